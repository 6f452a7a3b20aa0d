// The relying party (WebAuthn Level 3 §4), and whose pages and apps may answer.
import type { Context } from 'koa';
import type { Client } from '../records/collections.ts';
import type { Config } from '../tenant/config.ts';

/** Who asks: the relying party, by a domain and the origins that may answer. */
export interface RelyingParty {
  /** The RP ID: a host name, without a port. */
  id: string;
  origin: string | string[];
  /** What browsers show. */
  name: string;
}

interface PartyDependencies {
  /** The public origin. */
  baseUrl: string;
  config: Pick<Config, 'settings' | 'customOrigins'>;
}

/**
 * The origin of the custom domain that a request was asked by; undefined for our own. A credential answers to one domain
 * alone (§13.4.9): a ceremony keeps it till its end, which may be asked by another.
 */
export function customOrigin(
  ctx: Pick<Context, 'host'>,
  { config }: { config: Pick<Config, 'customOrigins'> },
): string | undefined {
  const origin = `https://${ctx.host}`;
  return config.customOrigins().includes(origin) ? origin : undefined;
}

/**
 * The relying party where our own pages ask: by our host, whose origin alone may answer.
 * @param at that of a custom domain, where it is asked by one ({@link customOrigin}).
 */
export function ownRelyingParty(
  { baseUrl, config }: PartyDependencies,
  at?: string,
): RelyingParty & { origin: string } {
  const { hostname: id, origin } = new URL(at ?? baseUrl);
  return { id, origin, name: config.settings().tenant.friendly_name };
}

/**
 * The relying party where an application asks: its pages, by their origins as it has registered them, and its apps, by
 * the certificates that sign them (Android) or our own host (iOS).
 */
export function relyingPartyFor(
  deps: PartyDependencies,
  client: Pick<Client, 'web_origins' | 'mobile'>,
  at?: string,
): RelyingParty {
  const own = ownRelyingParty(deps, at);
  const apps = [client.mobile?.android?.sha256_cert_fingerprints ?? []].flat().flatMap(apkOrigin);
  return { ...own, origin: [own.origin, `https://${own.id}`, ...(client.web_origins ?? []), ...apps] };
}

/** The origin of an Android app, by the fingerprint of its certificate in hexadecimal with colons. */
function apkOrigin(fingerprint: unknown): string[] {
  if (typeof fingerprint !== 'string' || !/^([0-9a-f]{2}:){31}[0-9a-f]{2}$/i.test(fingerprint)) return [];
  return [
    `android:apk-key-hash:${Buffer.from(fingerprint.replaceAll(':', ''), 'hex').toString('base64url')}`,
  ];
}
