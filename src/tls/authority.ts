// The local certificate authority of development (TLS=auto): made once, with a server certificate that is
// renewed when it is about to expire or the hosts change. People trust `ca.pem`.

import { createPrivateKey, randomBytes, type webcrypto, X509Certificate } from 'node:crypto';
import { existsSync } from 'node:fs';
import { chmod, mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { join } from 'node:path';
import type { Clock } from '../http/runtime.ts';

export interface ServerCertificate {
  /** PEM, the server's certificate followed by the CA's. */
  cert: string;
  /** PEM. */
  key: string;
  /** Where the CA's certificate is, for people to trust. */
  caFile: string;
}

const DAY = 86_400_000;
const CA_DAYS = 3650;
/** Browsers refuse server certificates that live longer than 398 days. */
const SERVER_DAYS = 397;
const RENEW_BEFORE_DAYS = 30;

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;

/**
 * The server certificate for some hosts, made where there is none that will do.
 * @param directory where the files are; keys are readable by the owner alone.
 * @param hosts DNS names and IP addresses.
 */
export async function localCertificate(
  directory: string,
  hosts: readonly string[],
  clock: Clock,
): Promise<ServerCertificate> {
  const file = (name: string) => join(directory, name);
  const caFile = file('ca.pem');
  await mkdir(directory, { recursive: true, mode: 0o700 });
  if (!existsSync(caFile) || !existsSync(file('ca-key.pem'))) {
    const ca = await makeAuthority(clock);
    await writePrivate(file('ca-key.pem'), ca.key);
    await writePrivate(caFile, ca.cert, 0o644);
  }
  const ca = await readFile(caFile, 'utf8');
  if (!(await isUsable(file('cert.pem'), file('key.pem'), ca, hosts, clock))) {
    const made = await makeServerCertificate(ca, await readFile(file('ca-key.pem'), 'utf8'), hosts, clock);
    await writePrivate(file('key.pem'), made.key);
    await writePrivate(file('cert.pem'), made.cert, 0o644);
  }
  return {
    cert: `${await readFile(file('cert.pem'), 'utf8')}${ca}`,
    key: await readFile(file('key.pem'), 'utf8'),
    caFile,
  };
}

async function isUsable(
  certFile: string,
  keyFile: string,
  ca: string,
  hosts: readonly string[],
  clock: Clock,
) {
  if (!existsSync(certFile) || !existsSync(keyFile)) return false;
  const cert = new X509Certificate(await readFile(certFile, 'utf8'));
  const fresh =
    Date.parse(cert.validTo) - clock() > RENEW_BEFORE_DAYS * DAY && Date.parse(cert.validFrom) <= clock();
  const covers = hosts.every(
    (host) => (isIP(host) === 0 ? cert.checkHost(host) : cert.checkIP(host)) !== undefined,
  );
  return (
    fresh &&
    covers &&
    cert.verify(new X509Certificate(ca).publicKey) &&
    cert.checkPrivateKey(createPrivateKey(await readFile(keyFile, 'utf8')))
  );
}

async function makeAuthority(clock: Clock): Promise<{ cert: string; key: string }> {
  const { x509, keys } = await tools();
  const cert = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: serial(),
    name: 'CN=Gatehouse local CA',
    ...validity(clock, CA_DAYS),
    keys,
    signingAlgorithm: ALGORITHM,
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return { cert: `${cert.toString('pem')}\n`, key: await privatePem(keys.privateKey) };
}

async function makeServerCertificate(
  caPem: string,
  caKeyPem: string,
  hosts: readonly string[],
  clock: Clock,
) {
  const { x509, keys } = await tools();
  const ca = new x509.X509Certificate(caPem);
  const signingKey = await importPrivate(caKeyPem);
  const cert = await x509.X509CertificateGenerator.create({
    serialNumber: serial(),
    subject: `CN=${hosts[0] ?? 'localhost'}`,
    issuer: ca.subject,
    ...validity(clock, SERVER_DAYS),
    publicKey: keys.publicKey,
    signingKey,
    signingAlgorithm: ALGORITHM,
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
      new x509.SubjectAlternativeNameExtension(
        hosts.map((host) => ({ type: isIP(host) === 0 ? 'dns' : 'ip', value: host }) as const),
      ),
      await x509.AuthorityKeyIdentifierExtension.create(ca, false),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return { cert: `${cert.toString('pem')}\n`, key: await privatePem(keys.privateKey) };
}

/** Loaded only where a certificate is made: the library is large, and wants its polyfill first. */
async function tools() {
  await import('reflect-metadata');
  const x509 = await import('@peculiar/x509');
  const keys = await crypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']);
  return { x509, keys };
}

function validity(clock: Clock, days: number): { notBefore: Date; notAfter: Date } {
  // A little in the past, for machines whose clocks differ.
  const start = clock() - 3_600_000;
  return { notBefore: new Date(start), notAfter: new Date(start + days * DAY) };
}

/** A positive serial of 120 bits (RFC 5280 §4.1.2.2). */
function serial(): string {
  return `01${randomBytes(15).toString('hex')}`;
}

async function privatePem(key: webcrypto.CryptoKey): Promise<string> {
  const der = Buffer.from(await crypto.subtle.exportKey('pkcs8', key));
  return createPrivateKey({ key: der, format: 'der', type: 'pkcs8' })
    .export({ format: 'pem', type: 'pkcs8' })
    .toString();
}

function importPrivate(pem: string): Promise<webcrypto.CryptoKey> {
  const der = createPrivateKey(pem).export({ format: 'der', type: 'pkcs8' });
  return crypto.subtle.importKey('pkcs8', new Uint8Array(der), ALGORITHM, false, ['sign']);
}

async function writePrivate(path: string, text: string, mode = 0o600): Promise<void> {
  await writeFile(`${path}.new`, text, { mode });
  await chmod(`${path}.new`, mode);
  await rename(`${path}.new`, path);
}
