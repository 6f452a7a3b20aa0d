// Certificates of clients, self-signed by an application or signed by an authority.
import 'reflect-metadata';
import { randomBytes, type webcrypto, X509Certificate } from 'node:crypto';
import * as x509 from '@peculiar/x509';

export interface TestCertificate {
  /** PEM. */
  cert: string;
  /** PEM. */
  key: string;
  certificate: X509Certificate;
  /** `x5t#S256`: SHA-256 in base64url. */
  thumbprint: string;
  /** For signing other certificates. */
  authority: Authority;
}

interface Authority {
  name: string;
  key: webcrypto.CryptoKey;
}

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;
const DAY = 86_400_000;

interface Made {
  /** RFC 4514, `CN=client` by default. */
  subject?: string;
  /** The issuer; self-signed by default. */
  issuer?: Authority;
  /** Milliseconds from now. */
  from?: number;
  to?: number;
  /** Extended key usages by OID; none by default. */
  usages?: string[];
  isAuthority?: boolean;
}

export const CLIENT_AUTH = '1.3.6.1.5.5.7.3.2';
export const SERVER_AUTH = '1.3.6.1.5.5.7.3.1';

/** Creates a certificate. */
export async function clientCertificate({
  subject = 'CN=client',
  issuer,
  from = -3_600_000,
  to = 30 * DAY,
  usages,
  isAuthority = false,
}: Made = {}): Promise<TestCertificate> {
  const keys = await crypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']);
  const made = await x509.X509CertificateGenerator.create({
    serialNumber: `01${randomBytes(8).toString('hex')}`,
    subject,
    issuer: issuer?.name ?? subject,
    notBefore: new Date(Date.now() + from),
    notAfter: new Date(Date.now() + to),
    signingAlgorithm: ALGORITHM,
    publicKey: keys.publicKey,
    signingKey: issuer?.key ?? keys.privateKey,
    extensions: [
      new x509.BasicConstraintsExtension(isAuthority, undefined, true),
      ...(usages === undefined ? [] : [new x509.ExtendedKeyUsageExtension(usages)]),
    ],
  });
  const cert = `${made.toString('pem')}\n`;
  const der = Buffer.from(await crypto.subtle.exportKey('pkcs8', keys.privateKey));
  const certificate = new X509Certificate(cert);
  return {
    cert,
    key: `-----BEGIN PRIVATE KEY-----\n${der.toString('base64')}\n-----END PRIVATE KEY-----\n`,
    certificate,
    thumbprint: Buffer.from(certificate.fingerprint256.replaceAll(':', ''), 'hex').toString('base64url'),
    authority: { name: subject, key: keys.privateKey },
  };
}
