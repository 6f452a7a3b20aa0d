// The public keys that verify an application's assertions (RFC 7523), as in the tenant file.

import { createPublicKey, type KeyObject } from 'node:crypto';
import { publicPemKey } from '../../runtime/pem-keys.ts';
import { sha256 } from '../../runtime/secrets.ts';

/** A key in one of two forms, and its algorithm. */
export interface Credential {
  readonly alg: string;
  readonly pem?: string | undefined;
  readonly jwk?: Readonly<Record<string, unknown>> | undefined;
  readonly kid?: string | undefined;
  /** ISO 8601. */
  readonly expires_at?: string | undefined;
}

/** Whether it only names a key that an export does not contain. It verifies nothing. */
export const isNameOnly = (credential: Readonly<Record<string, unknown>>): boolean =>
  credential.id !== undefined &&
  ['pem', 'jwk', 'subject_dn', 'thumbprint_sha256'].every((name) => !credential[name]);

/** Returns the id of a credential; one from a tenant file may have none of its own, and has one of its contents. */
export function credentialId(credential: Readonly<Record<string, unknown>>): string {
  const { id, pem, jwk, alg, subject_dn, thumbprint_sha256 } = credential;
  if (typeof id === 'string') return id;
  const parts = subject_dn ?? thumbprint_sha256 ?? [pem, jwk, alg];
  return `cred_${sha256(JSON.stringify(parts)).replaceAll(/[-_]/g, '').slice(0, 16)}`;
}

/** Returns when a key expires, in epoch milliseconds. */
export function expiryOf({ expires_at }: Pick<Credential, 'expires_at'>): number {
  return expires_at === undefined ? Number.POSITIVE_INFINITY : Date.parse(expires_at);
}

/** What is wrong with a credential: the message, and the path of the member. */
interface CredentialFault {
  path: string[];
  message: string;
}

/** The members of a JWK that only a private or a shared key has (RFC 7518 §6.2.2, §6.3.2, §6.4). */
const PRIVATE_MEMBERS = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k', 'priv'];

/** The curve of each ECDSA algorithm (RFC 7518 §3.4), by OpenSSL's name. */
const CURVES: Readonly<Record<string, string>> = { ES256: 'prime256v1', ES384: 'secp384r1' };

/** Returns why a credential cannot verify an assertion, or contains a private key; undefined if it is valid. */
export function publicKeyFault(credential: Credential): CredentialFault | undefined {
  const { alg, pem, jwk } = credential;
  if ((pem === undefined) === (jwk === undefined))
    return { path: [], message: 'must have either pem or jwk' };
  const path = [pem === undefined ? 'jwk' : 'pem'];
  if (pem?.includes('PRIVATE KEY') === true || PRIVATE_MEMBERS.some((name) => jwk?.[name] !== undefined)) {
    return { path, message: 'is a private or shared key, which the application alone may have' };
  }
  if (jwk !== undefined && typeof jwk.kty !== 'string') return { path, message: 'has no kty' };
  if (jwk?.kid !== undefined && typeof jwk.kid !== 'string')
    return { path, message: 'has a kid that is no text' };
  let key: KeyObject;
  try {
    key = publicKeyOf(credential);
  } catch {
    return { path, message: 'is no public key' };
  }
  return isFor(alg, key) ? undefined : { path, message: `is no key for ${alg}: ${needs(alg)}` };
}

/** @throws Error when it is not a public key. */
export function publicKeyOf({ pem, jwk }: Credential): KeyObject {
  if (pem === undefined) return createPublicKey({ key: { ...jwk }, format: 'jwk' });
  // Deploy tools write line ends as the two characters `\n`.
  return publicPemKey(pem.replaceAll('\\n', '\n'));
}

function isFor(alg: string, { asymmetricKeyType: type, asymmetricKeyDetails: details }: KeyObject): boolean {
  if (alg === 'EdDSA') return type === 'ed25519';
  const curve = CURVES[alg];
  if (curve !== undefined) return type === 'ec' && details?.namedCurve === curve;
  return type === 'rsa' && (details?.modulusLength ?? 0) >= 2048;
}

function needs(alg: string): string {
  if (alg === 'EdDSA') return 'it must be Ed25519';
  if (alg === 'ES256') return 'it must be of the curve P-256';
  return alg === 'ES384' ? 'it must be of the curve P-384' : 'it must be RSA of at least 2048 bits';
}
