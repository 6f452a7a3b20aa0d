// A client's key pair: the public key as in the tenant file, and the private key to sign with.
import { type CryptoKey, exportJWK, generateKeyPair } from 'jose';

export interface ClientKeyPair {
  alg: string;
  privateKey: CryptoKey;
  credential: { alg: string; kid: string; jwk: object };
}

/** Creates one for an algorithm (RFC 7518 §3.1). */
export async function clientKey(alg: string): Promise<ClientKeyPair> {
  const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true });
  return { alg, privateKey, credential: { alg, kid: `${alg}-key-1`, jwk: await exportJWK(publicKey) } };
}
