// Proofs of DPoP (RFC 9449 §4), also such as no library makes.
import { createHash, generateKeyPairSync, type JsonWebKey, type KeyObject, randomUUID } from 'node:crypto';
import { calculateJwkThumbprint, type JWK, SignJWT } from 'jose';

/** What a proof has in place of what it should have; undefined leaves it out. */
export interface ProofOver {
  header?: Record<string, unknown>;
  payload?: Record<string, unknown>;
  /** Of the token that it accompanies. */
  accessToken?: string;
  nonce?: string;
  /** Signs in place of the key. */
  signer?: KeyObject;
}

export interface Prover {
  jwk: JWK;
  privateJwk: JsonWebKey;
  thumbprint: string;
  proof(method: string, url: string, over?: ProofOver): Promise<string>;
}

/** Somebody with a key of their own. */
export async function createProver(curve = 'P-256', alg = 'ES256'): Promise<Prover> {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: curve });
  const jwk = publicKey.export({ format: 'jwk' }) as JWK;
  return {
    jwk,
    privateJwk: privateKey.export({ format: 'jwk' }),
    thumbprint: await calculateJwkThumbprint(jwk),
    proof: (method, url, { header, payload, accessToken, nonce, signer } = {}) =>
      new SignJWT({
        jti: randomUUID(),
        htm: method,
        htu: url,
        iat: Math.floor(Date.now() / 1000),
        ...(accessToken !== undefined && { ath: athOf(accessToken) }),
        ...(nonce !== undefined && { nonce }),
        ...payload,
      })
        .setProtectedHeader({ alg, typ: 'dpop+jwt', jwk, ...header })
        .sign(signer ?? privateKey),
  };
}

/** The `ath` of a token (§4.2). */
export function athOf(accessToken: string): string {
  return createHash('sha256').update(accessToken).digest('base64url');
}
