// A new key pair with its certificate.
import { randomUUID } from 'node:crypto';
import { calculateJwkThumbprint, exportJWK, generateKeyPair, type JWK } from 'jose';
import type { SigningKeyRecord } from '../records/engine.ts';
import { type Clock, epochSeconds } from '../runtime/clock.ts';

/** Ten years: relying parties check the key set, not this certificate, but some parse it. */
const CERTIFICATE_DAYS = 3650;

/** How a certificate is signed by a key of each kind: some take no RSASSA-PSS in one, so RSA keys sign PKCS #1 v1.5. */
const CERTIFIED = {
  RSA: { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' },
  EC: { name: 'ECDSA', hash: 'SHA-256' },
  OKP: { name: 'Ed25519' },
} as const;

/**
 * A key of the kind that an algorithm wants (RSA of 2048 bits, P-256, Ed25519), with a self-signed certificate of ten
 * years.
 * @param alg what its JWK says that it is used with, and nothing else (RFC 8725 §3.1).
 */
export async function makeSigningKey(
  clock: Clock,
  commonName: string,
  alg = 'RS256',
): Promise<Omit<SigningKeyRecord, 'state'>> {
  const kind = alg.startsWith('ES') ? 'EC' : alg === 'EdDSA' ? 'OKP' : 'RSA';
  const certified = CERTIFIED[kind];
  // An RSA key is made as one that can sign its certificate; what signs with it is told by its `alg`.
  const made = kind === 'RSA' ? 'RS256' : alg;
  const { privateKey, publicKey } = await generateKeyPair(made, { modulusLength: 2048, extractable: true });
  const jwk = await exportJWK(privateKey);
  const kid = await calculateJwkThumbprint(jwk as JWK);
  // Loaded only here, at a first start: it is large, and wants its polyfill first.
  await import('reflect-metadata');
  const x509 = await import('@peculiar/x509');
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: randomUUID().replaceAll('-', ''),
    name: `CN=${commonName}`,
    notBefore: new Date(clock()),
    notAfter: new Date(clock() + CERTIFICATE_DAYS * 86_400_000),
    keys: { privateKey, publicKey },
    signingAlgorithm: certified,
  });
  return {
    id: kid,
    jwk: { ...jwk, kid, use: 'sig', alg },
    x5c: [Buffer.from(certificate.rawData).toString('base64')],
    createdAt: epochSeconds(clock),
  };
}
