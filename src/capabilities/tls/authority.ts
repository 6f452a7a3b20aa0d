// The local certificate authority of development (TLS=auto). It is made once, with a server certificate that is renewed
// when it is about to expire or the hosts change. Developers trust `ca.pem`.
import { createPrivateKey, type KeyObject, randomBytes, type webcrypto, X509Certificate } from 'node:crypto';
import { existsSync } from 'node:fs';
import { chmod, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { join } from 'node:path';
import { addressBytes, isLoopbackAddress } from '../../http/addresses.ts';
import type { Clock } from '../../runtime/clock.ts';
import { naming } from '../../runtime/files.ts';

interface ServerCertificate {
  /** PEM, the server's certificate followed by the CA's. */
  cert: string;
  /** PEM. */
  key: string;
  /** Path of the CA's certificate, to trust. */
  caFile: string;
  /** Warnings for those who trust the CA, one sentence each. */
  warnings: string[];
}

const DAY = 86_400_000;
const CA_DAYS = 3650;
/** Browsers refuse server certificates that live longer than 398 days. */
const SERVER_DAYS = 397;
const RENEW_BEFORE_DAYS = 30;

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;

/** Paths of the files in the directory. */
interface CertificateFiles {
  ca: string;
  caKey: string;
  cert: string;
  key: string;
}

/**
 * Returns the server certificate for the hosts; makes one if there is none that is valid for them.
 * @param directory directory of the files; keys are readable by the owner only.
 * @param hosts DNS names and IP addresses.
 * @throws Error naming the file that is damaged, missing beside the others, or does not belong to them.
 */
export async function localCertificate(
  directory: string,
  hosts: readonly string[],
  clock: Clock,
): Promise<ServerCertificate> {
  const file = (name: string) => join(directory, name);
  const files = {
    ca: file('ca.pem'),
    caKey: file('ca-key.pem'),
    cert: file('cert.pem'),
    key: file('key.pem'),
  };
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const warnings = await ensureAuthority(files, hosts, clock);
  const ca = await readFile(files.ca, 'utf8');
  if (!(await isUsable(files, hosts, clock))) {
    const issued = await makeServerCertificate(ca, await authorityKey(files), hosts, clock);
    await writePrivate(files.key, issued.key);
    await writePrivate(files.cert, issued.cert, 0o644);
  }
  return {
    cert: `${await readFile(files.cert, 'utf8')}${ca}`,
    key: await readFile(files.key, 'utf8'),
    caFile: files.ca,
    warnings,
  };
}

/**
 * Makes the CA if there is none, or its constraints do not allow these hosts.
 * @returns warnings for those who trust it.
 */
async function ensureAuthority(
  files: CertificateFiles,
  hosts: readonly string[],
  clock: Clock,
): Promise<string[]> {
  if (!existsSync(files.ca)) {
    // Without a server certificate the CA was never in use, so nobody trusts it yet.
    if (existsSync(files.cert)) throw new Error(`${files.ca} is missing`);
    await writeAuthority(files, hosts, clock);
    return [];
  }
  const ca = await readCertificate(files.ca);
  const isExpiring = Date.parse(ca.validTo) - clock() < SERVER_DAYS * DAY;
  const permitted = await permittedBy(ca);
  const unpermitted = hosts.filter((host) => !permits(permitted, host));
  if (unpermitted.length === 0 && !isExpiring) return [];
  await rm(files.cert, { force: true });
  await rm(files.ca);
  await writeAuthority(files, hosts, clock);
  const reason = isExpiring
    ? 'the one before expires'
    : `the one before may not sign for ${unpermitted.join(', ')}`;
  return [`made a new CA, ${reason}: trust ${files.ca} anew`];
}

async function writeAuthority(
  files: CertificateFiles,
  hosts: readonly string[],
  clock: Clock,
): Promise<void> {
  const issued = await makeAuthority(hosts, clock);
  await writePrivate(files.caKey, issued.key);
  // The certificate is written last: after a crash in between, a new CA is made.
  await writePrivate(files.ca, issued.cert, 0o644);
}

/** Returns the CA's key. It is needed only to sign: a server whose operator removed it keeps its certificate. */
async function authorityKey({ ca, caKey }: CertificateFiles): Promise<string> {
  if (!existsSync(caKey)) throw new Error(`${caKey} is missing, and a server certificate must be made`);
  const pem = await readFile(caKey, 'utf8');
  if ((await readCertificate(ca)).checkPrivateKey(keyIn(caKey, pem))) return pem;
  throw new Error(`${caKey} is not the key of ${ca}`);
}

/**
 * Reports whether the server certificate is still valid for the hosts.
 * @throws Error naming the file that is damaged.
 */
async function isUsable(files: CertificateFiles, hosts: readonly string[], clock: Clock): Promise<boolean> {
  if (!existsSync(files.cert) || !existsSync(files.key)) return false;
  const cert = await readCertificate(files.cert);
  const isFresh =
    Date.parse(cert.validTo) - clock() > RENEW_BEFORE_DAYS * DAY && Date.parse(cert.validFrom) <= clock();
  const coversHosts = hosts.every(
    (host) => (isIP(host) === 0 ? cert.checkHost(host) : cert.checkIP(host)) !== undefined,
  );
  return (
    isFresh &&
    coversHosts &&
    cert.verify((await readCertificate(files.ca)).publicKey) &&
    cert.checkPrivateKey(keyIn(files.key, await readFile(files.key, 'utf8')))
  );
}

async function readCertificate(file: string): Promise<X509Certificate> {
  try {
    return new X509Certificate(await readFile(file, 'utf8'));
  } catch (cause) {
    throw new Error(`${file} is no certificate in PEM`, { cause });
  }
}

function keyIn(file: string, pem: string): KeyObject {
  try {
    return createPrivateKey(pem);
  } catch (cause) {
    throw new Error(`${file} is no private key in PEM`, { cause });
  }
}

async function makeAuthority(hosts: readonly string[], clock: Clock): Promise<{ cert: string; key: string }> {
  const { x509, keys } = await certificateTools();
  const cert = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: serial(),
    name: 'CN=Gatehouse local CA',
    ...validity(clock, CA_DAYS),
    keys,
    signingAlgorithm: ALGORITHM,
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
      // Server certificates only: the name constraints below do not cover mail addresses and code signing.
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
      new x509.Extension(NAME_CONSTRAINTS, true, await nameConstraints(permittedFor(hosts))),
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
  const { x509, keys } = await certificateTools();
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

/** Loaded only when a certificate is made: the library is large and needs its polyfill first. */
async function certificateTools() {
  await import('reflect-metadata');
  const x509 = await import('@peculiar/x509');
  const keys = await crypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']);
  return { x509, keys };
}

function validity(clock: Clock, days: number): { notBefore: Date; notAfter: Date } {
  // An hour in the past, for clients whose clocks are behind.
  const start = clock() - 3_600_000;
  return { notBefore: new Date(start), notAfter: new Date(start + days * DAY) };
}

/** Returns a positive serial of 120 bits (RFC 5280 §4.1.2.2). */
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
  await naming(path, writeFile(`${path}.new`, text, { mode }));
  await chmod(`${path}.new`, mode);
  await rename(`${path}.new`, path);
}

// Name constraints (RFC 5280 §4.2.1.10): the local CA may only sign for this machine and the server's own names, so
// that a key stolen from a developer's disk cannot impersonate other sites.

/** OID of id-ce-nameConstraints. */
const NAME_CONSTRAINTS = '2.5.29.30';

/** What a CA may sign for: DNS names, each with the names below it, and networks as address and prefix length. */
interface Permitted {
  names: readonly string[];
  networks: readonly string[];
}

/** This machine. */
const LOOPBACK: Permitted = { names: ['localhost'], networks: ['127.0.0.0/8', '::1/128'].map(networkOf) };

/** Returns the names that permit this machine and the hosts, and nothing else. @param hosts DNS names and IP addresses. */
function permittedFor(hosts: readonly string[]): Permitted {
  const others = hosts.filter((host) => !isOfThisMachine(host));
  const names = others.filter((host) => isIP(host) === 0).map((host) => host.toLowerCase());
  const networks = others.filter((host) => isIP(host) !== 0).map(networkOf);
  return { names: [...LOOPBACK.names, ...names], networks: [...LOOPBACK.networks, ...networks] };
}

// docs/understand/decisions/operating.md#the-local-certificate-authority-is-constrained
/** Encodes the extension. */
async function nameConstraints({ names, networks }: Permitted) {
  const { asn1, x509 } = await parsers();
  const subtrees = [
    ...names.map((dNSName) => ({ dNSName })),
    ...networks.map((iPAddress) => ({ iPAddress })),
  ].map((name) => new x509.GeneralSubtree({ base: new x509.GeneralName(name) }));
  return asn1.AsnConvert.serialize(
    new x509.NameConstraints({ permittedSubtrees: new x509.GeneralSubtrees(subtrees) }),
  );
}

/** Returns what a CA may sign for, by its constraints. Node.js does not parse this extension. */
async function permittedBy(ca: X509Certificate): Promise<Permitted> {
  const { asn1, x509 } = await parsers();
  const { extensions = [] } = asn1.AsnConvert.parse(ca.raw, x509.Certificate).tbsCertificate;
  const found = extensions.find(({ extnID }) => extnID === NAME_CONSTRAINTS);
  if (found === undefined) return { names: [], networks: [] };
  const { permittedSubtrees = [] } = asn1.AsnConvert.parse(found.extnValue, x509.NameConstraints);
  return {
    names: permittedSubtrees.flatMap(({ base }) => base.dNSName?.toLowerCase() ?? []),
    networks: permittedSubtrees.flatMap(({ base }) => (base.iPAddress ? networkOf(base.iPAddress) : [])),
  };
}

/** Reports whether a host is permitted, by its own name or one above it, or as an address of its own. */
function permits({ names, networks }: Permitted, host: string): boolean {
  if (isOfThisMachine(host))
    return (
      LOOPBACK.names.every((one) => names.includes(one)) &&
      LOOPBACK.networks.every((one) => networks.includes(one))
    );
  if (isIP(host) !== 0) return networks.includes(networkOf(host));
  return parents(host.toLowerCase()).some((one) => names.includes(one));
}

/** Loaded only for `TLS=auto`. */
async function parsers() {
  const [asn1, x509] = await Promise.all([import('@peculiar/asn1-schema'), import('@peculiar/asn1-x509')]);
  return { asn1, x509 };
}

function isOfThisMachine(host: string): boolean {
  if (isIP(host) !== 0) return isLoopbackAddress(host);
  return parents(host.toLowerCase()).includes('localhost');
}

/** Returns a name and the names above it. */
function parents(name: string): string[] {
  const labels = name.split('.');
  return labels.map((_, index) => labels.slice(index).join('.'));
}

/**
 * Spells a network in one way. In IPv6 that is without `::`, because the parser shortens differently.
 * @param text an address, which is the network of its own, or with a prefix length.
 */
function networkOf(text: string): string {
  const [address = '', prefix] = text.split('/');
  const bytes = addressBytes(address);
  const isV4 = bytes.length === 4;
  const spelled = isV4 ? [...bytes].join('.') : bytes.toString('hex').replace(/.{4}(?!$)/g, '$&:');
  return `${spelled}/${prefix ?? bytes.length * 8}`;
}
