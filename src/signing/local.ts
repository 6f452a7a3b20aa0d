// Signs by keys that this process has, on the thread pool: an RSA signature takes most of a millisecond of a processor,
// during which the event loop answers others.
import { constants, type KeyObject, sign } from 'node:crypto';
import type { SigningAlg } from '../records/signing-algs.ts';

/** What a key is asked for: what tokens are signed with, and what SAML messages of older service providers are. */
export type SignatureAlg = SigningAlg | 'RS1';

const DIGEST: Record<SignatureAlg, string | null> = {
  RS1: 'sha1',
  RS256: 'sha256',
  RS512: 'sha512',
  PS256: 'sha256',
  ES256: 'sha256',
  EdDSA: null,
};

/** @returns the signature as JWS has it (RFC 7518 §3: of ECDSA the two numbers, one after the other). */
export function signLocally(alg: SignatureAlg, key: KeyObject, data: Uint8Array): Promise<Buffer> {
  const options =
    alg === 'PS256'
      ? { key, padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: 32 }
      : alg === 'ES256'
        ? { key, dsaEncoding: 'ieee-p1363' as const }
        : { key };
  return new Promise((resolve, reject) => {
    sign(DIGEST[alg], data, options, (fault, signature) => {
      if (fault === null) resolve(signature);
      else reject(fault);
    });
  });
}
