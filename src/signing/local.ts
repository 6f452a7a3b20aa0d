// Signs by keys that this process has, on the thread pool: an RSA signature takes most of a millisecond of a processor,
// during which the event loop answers others.
import { AsyncLocalStorage } from 'node:async_hooks';
import { constants, type KeyObject, sign, verify } from 'node:crypto';
import type { SigningAlg } from '../records/signing-algs.ts';

/** What a key is asked for: what tokens are signed with, and what SAML messages of older service providers are. */
export type SignatureAlg = SigningAlg | 'RS1';

/** The algorithms of SAML's signatures by the names that they have here. */
export const JOSE_ALG = { 'rsa-sha1': 'RS1', 'rsa-sha256': 'RS256', 'rsa-sha512': 'RS512' } as const;

const DIGEST: Record<SignatureAlg, string | null> = {
  RS1: 'sha1',
  RS256: 'sha256',
  RS512: 'sha512',
  PS256: 'sha256',
  ES256: 'sha256',
  EdDSA: null,
};

/** Signatures are as JWS has them (RFC 7518 §3): of ECDSA the two numbers, one after the other. */
function optionsFor(alg: SignatureAlg, key: KeyObject) {
  if (alg === 'PS256') return { key, padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: 32 };
  if (alg === 'ES256') return { key, dsaEncoding: 'ieee-p1363' as const };
  // As it is: Node.js takes 20 microseconds of the main thread to tell that an object with a key is none.
  return key;
}

/**
 * Does something that is of no request. A job of the thread pool lives until V8's next large collection, and with it all that the
 * request is whose context it was begun in: a tenth of what a token request allocates.
 */
const ofNoRequest = AsyncLocalStorage.snapshot();

/** Signs. @param key private. */
export function signLocally(alg: SignatureAlg, key: KeyObject, data: Uint8Array): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const done = (fault: Error | null, signature: Buffer) => {
      if (fault === null) resolve(signature);
      else reject(fault);
    };
    ofNoRequest(() => sign(DIGEST[alg], data, optionsFor(alg, key), done));
  });
}

/** Whether a signature is that of a key. @param key public. */
export function verifies(
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
