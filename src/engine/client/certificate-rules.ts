// Rules for the certificate of an application, from its registered credentials (RFC 8705 §2).
import type { AdapterPayload } from 'oidc-provider';
import { expiryOf } from '../../records/client-keys.ts';
import type { Client } from '../../records/collections.ts';
import { type DistinguishedName, parseName } from '../../records/distinguished-name.ts';

/**
 * `signed`: the certificate is signed by a trusted authority for one of these subjects. `registered`: it is one of
 * these certificates.
 */
export type CertificateRules =
  | { is: 'signed'; subjects: readonly DistinguishedName[] }
  | { is: 'registered'; thumbprints: readonly string[] };

/**
 * Returns the rules of an application, from its credentials that have not expired.
 * @param now epoch milliseconds.
 * @returns undefined when it does not authenticate by a certificate.
 */
export function certificateRules(
  { client_authentication_methods: methods = {} }: Pick<Client, 'client_authentication_methods'>,
  now: number,
): CertificateRules | undefined {
  const { tls_client_auth: signed, self_signed_tls_client_auth: selfSigned } = methods;
  const isLive = (one: { readonly expires_at?: string | undefined }) => expiryOf(one) > now;
  if (signed !== undefined) {
    const subjects = signed.credentials.filter(isLive).flatMap(({ subject_dn: text }) => {
      const name = parseName(text);
      return name === undefined ? [] : [name];
    });
    return { is: 'signed', subjects };
  }
  if (selfSigned === undefined) return undefined;
  return {
    is: 'registered',
    thumbprints: selfSigned.credentials.filter(isLive).map((one) => one.thumbprint_sha256),
  };
}

/**
 * The engine's metadata of a client with {@link CertificateRules}. The engine knows registered certificates only as
 * key sets, and a single subject. Both kinds of clients are therefore declared as `tls_client_auth`, for which it
 * calls our check in mtls.ts.
 */
export const certificateAuthentication = {
  token_endpoint_auth_method: 'tls_client_auth',
  tls_client_auth_subject_dn: 'as registered',
} as const satisfies Partial<AdapterPayload>;
