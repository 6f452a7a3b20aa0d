// A key pair of a client: the public half as the tenant file has it, the private one to sign with.
import { type CryptoKey, exportJWK, generateKeyPair } from 'jose';

export interface ClientKeyPair {
  alg: string;
  privateKey: CryptoKey;
  credential: { alg: string; kid: string; jwk: object };
}

/** Makes one for an algorithm (RFC 7518 §3.1). */
export async function clientKey(alg: string): Promise<ClientKeyPair> {
  const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true });
  return { alg, privateKey, credential: { alg, kid: `${alg}-key-1`, jwk: await exportJWK(publicKey) } };
}
