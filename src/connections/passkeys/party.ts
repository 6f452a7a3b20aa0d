// The relying party of passkeys (WebAuthn Level 3 §4), and whose pages and apps may answer for it.
import type { Client } from '../../records/collections.ts';
import type { Config } from '../../tenant/config.ts';
import type { RelyingParty } from '../../webauthn/ceremonies.ts';

interface PartyDependencies {
  baseUrl: string;
  config: Pick<Config, 'settings'>;
}

/** The relying party where our own pages ask. */
export function ownParty({ baseUrl, config }: PartyDependencies): RelyingParty {
  const { hostname: id, origin } = new URL(baseUrl);
  return { id, origin, name: config.settings().tenant.friendly_name };
}

/**
 * The relying party where an application asks: its pages, by their origins as it has registered them, and its apps, by
 * the certificates that sign them (Android) or our own host (iOS).
 */
export function partyFor(
  deps: PartyDependencies,
  client: Pick<Client, 'web_origins' | 'mobile'>,
): RelyingParty {
  const own = ownParty(deps);
  const { origin } = new URL(deps.baseUrl);
  const apps = [client.mobile?.android?.sha256_cert_fingerprints ?? []].flat().flatMap(apkOrigin);
  return { ...own, origin: [origin, `https://${own.id}`, ...(client.web_origins ?? []), ...apps] };
}

/** The origin of an Android app, by the fingerprint of its certificate in hexadecimal with colons. */
function apkOrigin(fingerprint: unknown): string[] {
  if (typeof fingerprint !== 'string' || !/^([0-9a-f]{2}:){31}[0-9a-f]{2}$/i.test(fingerprint)) return [];
  return [
    `android:apk-key-hash:${Buffer.from(fingerprint.replaceAll(':', ''), 'hex').toString('base64url')}`,
  ];
}
