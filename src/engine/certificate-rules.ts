// What the certificate of an application must be, by its credentials (RFC 8705 §2).
import type { AdapterPayload } from 'oidc-provider';
import { expiryOf } from '../records/client-keys.ts';
import type { Client } from '../records/collections.ts';
import { type DistinguishedName, parseName } from '../records/distinguished-name.ts';

/** What the certificate of a client must be: signed by a trusted authority for one of its names, or one of its own. */
export type CertificateRules =
  | { is: 'signed'; subjects: readonly DistinguishedName[] }
  | { is: 'registered'; thumbprints: readonly string[] };

/**
 * The rules of an application, by those of its credentials that are good.
 * @param now epoch milliseconds.
 * @returns undefined where it does not authenticate by a certificate.
 */
export function certificateRules(
  { client_authentication_methods: methods = {} }: Pick<Client, 'client_authentication_methods'>,
  now: number,
): CertificateRules | undefined {
  const { tls_client_auth: signed, self_signed_tls_client_auth: own } = methods;
  const isLive = (one: { readonly expires_at?: string | undefined }) => expiryOf(one) > now;
  if (signed !== undefined) {
    const subjects = signed.credentials.filter(isLive).flatMap(({ subject_dn: text }) => {
      const name = parseName(text);
      return name === undefined ? [] : [name];
    });
    return { is: 'signed', subjects };
  }
  if (own === undefined) return undefined;
  return {
    is: 'registered',
    thumbprints: own.credentials.filter(isLive).map((one) => one.thumbprint_sha256),
  };
}

/**
 * The engine's metadata of a client with {@link CertificateRules}. It knows certificates of a client by whole key sets
 * and a subject by one text; both are asked of us as the latter.
 */
export const certificateAuthentication = {
  token_endpoint_auth_method: 'tls_client_auth',
  tls_client_auth_subject_dn: 'as registered',
} as const satisfies Partial<AdapterPayload>;
