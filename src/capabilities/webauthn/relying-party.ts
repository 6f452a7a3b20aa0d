// The relying party (WebAuthn Level 3 §4), and the origins that may answer it.
import type { Context } from 'koa';
import { tenantHostOf } from '../../http/server/request-target.ts';
import { isPattern } from '../../records/clients/allowed-urls.ts';
import type { Client } from '../../records/collections.ts';
import type { Config } from '../../tenant/config.ts';

/** A relying party: its domain, and the origins that may answer. */
export interface RelyingParty {
  /** The RP ID: a host name, without a port. */
  id: string;
  origin: string | string[];
  /** The name that browsers show. */
  name: string;
}

interface PartyDependencies {
  baseUrl: string;
  config: Pick<Config, 'settings'>;
}

// docs/understand/decisions/second-factors.md#a-passkey-is-bound-to-the-domain-that-it-was-created-at
/**
 * Returns the origin of the custom domain of a request; undefined for our own domain. A credential is bound to one
 * domain (§13.4.9), so a ceremony stores the origin: its last request may come by another domain.
 */
export function customOrigin(ctx: Context): string | undefined {
  const { origin, isCustom } = tenantHostOf(ctx);
  return isCustom ? origin : undefined;
}

/**
 * Returns the relying party of our own pages. Only the origin of its host may answer.
 * @param at the origin of a custom domain ({@link customOrigin}); undefined for our own.
 */
export function serverRelyingParty(
  { baseUrl, config }: PartyDependencies,
  at?: string,
): RelyingParty & { origin: string } {
  const { hostname: id, origin } = new URL(at ?? baseUrl);
  return { id, origin, name: config.settings().tenant.friendly_name };
}

/**
 * Returns the relying party of an application. Its registered web origins may answer, and its apps: Android apps by
 * the certificates that sign them, iOS apps as our own host.
 * @param at as for {@link serverRelyingParty}.
 */
export function relyingPartyFor(
  deps: PartyDependencies,
  client: Pick<Client, 'web_origins' | 'mobile'>,
  at?: string,
): RelyingParty {
  const ownParty = serverRelyingParty(deps, at);
  const apps = [client.mobile?.android?.sha256_cert_fingerprints ?? []].flat().flatMap(apkOrigin);
  return {
    ...ownParty,
    origin: [
      ownParty.origin,
      `https://${ownParty.id}`,
      ...(client.web_origins ?? []).filter((entry) => !isPattern(entry)),
      ...apps,
    ],
  };
}

/**
 * Returns the origin of an Android app.
 * @param fingerprint of its certificate, hexadecimal with colons; anything else gives none.
 */
function apkOrigin(fingerprint: unknown): string[] {
  if (typeof fingerprint !== 'string' || !/^([0-9a-f]{2}:){31}[0-9a-f]{2}$/i.test(fingerprint)) return [];
  return [
    `android:apk-key-hash:${Buffer.from(fingerprint.replaceAll(':', ''), 'hex').toString('base64url')}`,
  ];
}
