// Proofs of DPoP (RFC 9449 §4), including invalid ones that no library creates.
import { createHash, generateKeyPairSync, type JsonWebKey, type KeyObject, randomUUID } from 'node:crypto';
import { calculateJwkThumbprint, type JWK, SignJWT } from 'jose';

/** Members that replace those of a correct proof; undefined leaves a member out. */
interface ProofOver {
  header?: Record<string, unknown>;
  payload?: Record<string, unknown>;
  /** The access token that the proof accompanies. */
  accessToken?: string;
  nonce?: string;
  /** The private key to sign with instead of the right one. */
  signer?: KeyObject;
}

export interface Prover {
  jwk: JWK;
  privateJwk: JsonWebKey;
  thumbprint: string;
  proof(method: string, url: string, over?: ProofOver): Promise<string>;
}

/** A client with its own key. */
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

/** Returns the `ath` of a token (RFC 9449 §4.2). */
function athOf(accessToken: string): string {
  return createHash('sha256').update(accessToken).digest('base64url');
}
