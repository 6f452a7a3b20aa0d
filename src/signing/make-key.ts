// A key of the tenant, made here or taken from where it is kept, with its certificate.
import { randomUUID, webcrypto } from 'node:crypto';
import {
  type CryptoKey,
  calculateJwkThumbprint,
  exportJWK,
  generateKeyPair,
  importJWK,
  type JWK,
} from 'jose';
import type { SigningKeyRecord } from '../records/engine.ts';
import { type Clock, epochSeconds } from '../runtime/clock.ts';
import type { HeldKey } from './holder.ts';

/** Ten years: relying parties check the key set, not this certificate, but some parse it. */
const CERTIFICATE_DAYS = 3650;

/** How a certificate is signed by a key of each kind; those of SAML applications know no RSASSA-PSS in one. */
const CERTIFIED = {
  RSA: { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' },
  PSS: { name: 'RSA-PSS', hash: 'SHA-256', saltLength: 32 },
  EC: { name: 'ECDSA', hash: 'SHA-256' },
  OKP: { name: 'Ed25519' },
} as const;

/** A key that has no place among those of its algorithm yet. */
export type MadeKey = Omit<SigningKeyRecord, 'state'>;

function kindOf(alg: string): 'RSA' | 'EC' | 'OKP' {
  if (alg === 'EdDSA') return 'OKP';
  return alg.startsWith('ES') ? 'EC' : 'RSA';
}

/**
 * A key of the kind that an algorithm wants (RSA of 2048 bits, P-256, Ed25519), with a self-signed certificate of ten
 * years.
 * @param alg what its JWK says that it is used with, and nothing else (RFC 8725 §3.1).
 */
export async function makeSigningKey(clock: Clock, commonName: string, alg = 'RS256'): Promise<MadeKey> {
  const kind = kindOf(alg);
  // An RSA key is made as one that can sign its certificate; what signs with it is told by its `alg`.
  const made = kind === 'RSA' ? 'RS256' : alg;
  const keys = await generateKeyPair(made, { modulusLength: 2048, extractable: true });
  const jwk = await exportJWK(keys.privateKey);
  const kid = await calculateJwkThumbprint(jwk as JWK);
  return {
    id: kid,
    jwk: { ...jwk, kid, use: 'sig', alg },
    x5c: [await certificate(clock, commonName, { ...keys, signingAlgorithm: CERTIFIED[kind] })],
    createdAt: epochSeconds(clock),
  };
}

/**
 * The record of a key that is kept elsewhere: its public half, and a certificate that it has signed there.
 * @throws what its holder throws.
 */
export async function takeHeldKey(clock: Clock, commonName: string, key: HeldKey): Promise<MadeKey> {
  const { kid, alg, jwk } = key;
  const publicKey = (await importJWK({ ...jwk, alg } as JWK, alg, { extractable: true })) as CryptoKey;
  const kind = alg === 'PS256' ? 'PSS' : kindOf(alg);
  // It signs what the certificate's maker would have signed with the private key.
  const subtle = new Proxy(webcrypto.subtle, {
    get: (target, name: keyof webcrypto.SubtleCrypto) =>
      name === 'sign'
        ? (_algorithm: unknown, _key: unknown, data: ArrayBuffer) => key.sign(new Uint8Array(data))
        : (target[name] as (...args: never[]) => unknown).bind(target),
  });
  const keys = { privateKey: publicKey, publicKey };
  const signingAlgorithm = alg === 'RS512' ? { ...CERTIFIED.RSA, hash: 'SHA-512' as const } : CERTIFIED[kind];
  const made = await certificate(
    clock,
    commonName,
    { ...keys, signingAlgorithm },
    {
      subtle,
      getRandomValues: webcrypto.getRandomValues.bind(webcrypto),
    },
  );
  return {
    id: kid,
    jwk: { ...jwk, kid, use: 'sig', alg },
    x5c: [made],
    createdAt: epochSeconds(clock),
  };
}

/** Base64 of the DER. */
async function certificate(
  clock: Clock,
  commonName: string,
  {
    signingAlgorithm,
    ...keys
  }: { privateKey: CryptoKey; publicKey: CryptoKey; signingAlgorithm: { name: string; hash?: string } },
  engine: Pick<webcrypto.Crypto, 'subtle' | 'getRandomValues'> = webcrypto,
): Promise<string> {
  // Loaded only here, at a first start: it is large, and wants its polyfill first.
  await import('reflect-metadata');
  const x509 = await import('@peculiar/x509');
  const made = await x509.X509CertificateGenerator.createSelfSigned(
    {
      serialNumber: randomUUID().replaceAll('-', ''),
      name: `CN=${commonName}`,
      notBefore: new Date(clock()),
      notAfter: new Date(clock() + CERTIFICATE_DAYS * 86_400_000),
      keys,
      signingAlgorithm,
    },
    engine as webcrypto.Crypto,
  );
  return Buffer.from(made.rawData).toString('base64');
}
