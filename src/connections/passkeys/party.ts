// Whose pages and apps may answer where an application asks for a passkey.
import type { Client } from '../../records/collections.ts';
import { ownParty, type PartyDependencies, type RelyingParty } from '../../webauthn/party.ts';

/**
 * The relying party where an application asks: its pages, by their origins as it has registered them, and its apps, by
 * the certificates that sign them (Android) or our own host (iOS).
 */
export function partyFor(
  deps: PartyDependencies,
  client: Pick<Client, 'web_origins' | 'mobile'>,
): RelyingParty {
  const own = ownParty(deps);
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
