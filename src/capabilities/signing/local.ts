// Signs with keys of this process, on the thread pool: an RSA signature takes most of a millisecond of processor time,
// during which the event loop answers other requests.
import { AsyncLocalStorage } from 'node:async_hooks';
import { constants, type KeyObject, sign, verify } from 'node:crypto';
import type { SigningAlg } from '../../records/base/signing-algs.ts';

/** The algorithms of a key: those of tokens, and RSA with SHA-1 for SAML messages of older service providers. */
export type SignatureAlg = SigningAlg | 'RS1';

/** The algorithms of SAML signatures by their names here. */
export const JOSE_ALG = { 'rsa-sha1': 'RS1', 'rsa-sha256': 'RS256', 'rsa-sha512': 'RS512' } as const;

const DIGEST: Record<SignatureAlg, string | null> = {
  RS1: 'sha1',
  RS256: 'sha256',
  RS512: 'sha512',
  PS256: 'sha256',
  ES256: 'sha256',
  EdDSA: null,
};

/** Signatures have the form of JWS (RFC 7518 §3): for ECDSA the two numbers, one after the other. */
function optionsFor(alg: SignatureAlg, key: KeyObject) {
  if (alg === 'PS256') return { key, padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: 32 };
  if (alg === 'ES256') return { key, dsaEncoding: 'ieee-p1363' as const };
  // The key itself, not an object with it: Node.js needs 20 microseconds of the main thread to examine such an object.
  return key;
}

/**
 * Runs a function outside of any request's async context. A job of the thread pool lives until V8's next major
 * collection, and keeps its context alive, which is a tenth of what a token request allocates.
 */
const outsideRequest = AsyncLocalStorage.snapshot();

/** @param key private. */
export function signLocally(alg: SignatureAlg, key: KeyObject, data: Uint8Array): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const done = (fault: Error | null, signature: Buffer) => {
      if (fault === null) resolve(signature);
      else reject(fault);
    };
    outsideRequest(() => sign(DIGEST[alg], data, optionsFor(alg, key), done));
  });
}

/** Reports whether a signature was made by a key. @param key public. */
export function verifySignature(
  alg: SignatureAlg,
  key: KeyObject,
  { data, signature }: { data: Uint8Array; signature: Uint8Array },
): Promise<boolean> {
  return new Promise((resolve, reject) => {
    verify(DIGEST[alg], data, optionsFor(alg, key), signature, (fault, isRight) => {
      if (fault === null) resolve(isRight);
      else reject(fault);
    });
  });
}
