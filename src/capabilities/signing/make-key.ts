// Makes records of signing keys with their certificates, for new keys and for keys that are kept outside.
import { randomUUID, webcrypto } from 'node:crypto';
import {
  type CryptoKey,
  calculateJwkThumbprint,
  exportJWK,
  generateKeyPair,
  importJWK,
  type JWK,
} from 'jose';
import type { SigningKeyRecord } from '../../records/state/engine.ts';
import { type Clock, epochSeconds } from '../../runtime/clock.ts';
import type { ExternalKey } from './holder.ts';

/** Ten years. Relying parties check the key set, not this certificate, but some parse it. */
const CERTIFICATE_DAYS = 3650;

/** Certificates for SAML applications cannot use RSASSA-PSS. */
const CERTIFICATE_ALGORITHMS = {
  RSA: { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' },
  PSS: { name: 'RSA-PSS', hash: 'SHA-256', saltLength: 32 },
  EC: { name: 'ECDSA', hash: 'SHA-256' },
  OKP: { name: 'Ed25519' },
} as const;

/** A key that has no role in its set yet. */
export type NewKey = Omit<SigningKeyRecord, 'state'>;

function kindOf(alg: string): 'RSA' | 'EC' | 'OKP' {
  if (alg === 'EdDSA') return 'OKP';
  return alg.startsWith('ES') ? 'EC' : 'RSA';
}

/**
 * Makes a key for an algorithm (RSA of 2048 bits, P-256, or Ed25519), with a self-signed certificate of ten years.
 * @param alg the only algorithm that its JWK is used with (RFC 8725 §3.1).
 */
export async function makeSigningKey(clock: Clock, commonName: string, alg = 'RS256'): Promise<NewKey> {
  const kind = kindOf(alg);
  // An RSA key is generated for RS256, so that it can sign its certificate. Its `alg` decides what it signs later.
  const madeCertificate = kind === 'RSA' ? 'RS256' : alg;
  const keys = await generateKeyPair(madeCertificate, { modulusLength: 2048, extractable: true });
  const jwk = await exportJWK(keys.privateKey);
  const kid = await calculateJwkThumbprint(jwk as JWK);
  return {
    id: kid,
    jwk: { ...jwk, kid, use: 'sig', alg },
    x5c: [await certificate(clock, commonName, { ...keys, signingAlgorithm: CERTIFICATE_ALGORITHMS[kind] })],
    createdAt: epochSeconds(clock),
  };
}

/**
 * Makes the record of a key that is kept outside: its public key, and a certificate signed by it.
 * @throws AuthError 503 when its holder does not sign.
 */
export async function externalKeyRecord(clock: Clock, commonName: string, key: ExternalKey): Promise<NewKey> {
  const { kid, alg, jwk } = key;
  const publicKey = (await importJWK({ ...jwk, alg } as JWK, alg, { extractable: true })) as CryptoKey;
  const kind = alg === 'PS256' ? 'PSS' : kindOf(alg);
  // Passes what the certificate library signs to the holder of the key.
  const subtle = new Proxy(webcrypto.subtle, {
    get: (target, name: keyof webcrypto.SubtleCrypto) =>
      name === 'sign'
        ? (_algorithm: unknown, _key: unknown, data: ArrayBuffer) => key.sign(new Uint8Array(data))
        : (target[name] as (...args: never[]) => unknown).bind(target),
  });
  const keys = { privateKey: publicKey, publicKey };
  const signingAlgorithm =
    alg === 'RS512'
      ? { ...CERTIFICATE_ALGORITHMS.RSA, hash: 'SHA-512' as const }
      : CERTIFICATE_ALGORITHMS[kind];
  const madeCertificate = await certificate(
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
    x5c: [madeCertificate],
    createdAt: epochSeconds(clock),
  };
}

/** Returns the DER in base64. */
async function certificate(
  clock: Clock,
  commonName: string,
  {
    signingAlgorithm,
    ...keys
  }: { privateKey: CryptoKey; publicKey: CryptoKey; signingAlgorithm: { name: string; hash?: string } },
  engine: Pick<webcrypto.Crypto, 'subtle' | 'getRandomValues'> = webcrypto,
): Promise<string> {
  // Loaded only when a key is made: the library is large and needs its polyfill first.
  await import('reflect-metadata');
  const x509 = await import('@peculiar/x509');
  const madeCertificate = await x509.X509CertificateGenerator.createSelfSigned(
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
  return Buffer.from(madeCertificate.rawData).toString('base64');
}
