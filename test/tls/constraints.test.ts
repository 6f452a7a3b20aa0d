// The local CA may only sign for this machine and the server's own names, so its key is of no use for other hosts.
import { webcrypto } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, isIP } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import tls from 'node:tls';
import { expect } from 'chai';
import 'reflect-metadata';
import * as x509 from '@peculiar/x509';
import { localCertificate } from '../../src/capabilities/tls/authority.ts';
import { createAgent } from '../support/agent.ts';
import { tenant } from '../support/flows.ts';
import { startServer } from '../support/server.ts';

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;
const HOSTS = ['localhost', '127.0.0.1', '::1', 'id.example.test', '192.0.2.7', '2001:db8::7'];

const newKeys = () => webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']);

async function pemOf(key: webcrypto.CryptoKey): Promise<string> {
  return x509.PemConverter.encode(await webcrypto.subtle.exportKey('pkcs8', key), 'PRIVATE KEY');
}

/** Makes what somebody with the CA's key could make: a certificate for any host. */
async function forge(directory: string, host: string): Promise<{ cert: string; key: string }> {
  const ca = new x509.X509Certificate(readFileSync(join(directory, 'ca.pem'), 'utf8'));
  const [pkcs8] = x509.PemConverter.decode(readFileSync(join(directory, 'ca-key.pem'), 'utf8'));
  const signingKey = await webcrypto.subtle.importKey(
    'pkcs8',
    pkcs8 ?? new ArrayBuffer(0),
    ALGORITHM,
    false,
    ['sign'],
  );
  const keys = await newKeys();
  const cert = await x509.X509CertificateGenerator.create({
    serialNumber: '01',
    subject: 'CN=whoever',
    issuer: ca.subject,
    publicKey: keys.publicKey,
    signingKey,
    signingAlgorithm: ALGORITHM,
    extensions: [
      new x509.SubjectAlternativeNameExtension([{ type: isIP(host) === 0 ? 'dns' : 'ip', value: host }]),
    ],
  });
  return { cert: `${cert.toString('pem')}\n${ca.toString('pem')}`, key: await pemOf(keys.privateKey) };
}

/** Makes a CA that may sign for any name. */
async function writeUnconstrained(directory: string): Promise<void> {
  const keys = await newKeys();
  const ca = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: '01',
    name: 'CN=Gatehouse local CA',
    notBefore: new Date(Date.now() - 3_600_000),
    notAfter: new Date(Date.now() + 3650 * 86_400_000),
    keys,
    signingAlgorithm: ALGORITHM,
    extensions: [new x509.BasicConstraintsExtension(true, 0, true)],
  });
  writeFileSync(join(directory, 'ca.pem'), ca.toString('pem'));
  writeFileSync(join(directory, 'ca-key.pem'), await pemOf(keys.privateKey));
}

describe('the local CA', () => {
  let directory: string;
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'gatehouse-constraints-'));
  });
  afterEach(() => rmSync(directory, { recursive: true, force: true }));

  const make = (hosts = HOSTS, after = 0) => localCertificate(directory, hosts, () => Date.now() + after);
  const caOf = () => readFileSync(join(directory, 'ca.pem'), 'utf8');

  /** Returns whether a client that trusts the CA accepts a certificate for a host. */
  async function trust(certificate: { cert: string; key: string }, host: string): Promise<string> {
    const server = tls.createServer(certificate, (socket) => socket.end().on('error', () => {}));
    server.on('tlsClientError', () => {});
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const socket = tls.connect({
      port: (server.address() as AddressInfo).port,
      host: '127.0.0.1',
      servername: isIP(host) === 0 ? host : '',
      ca: caOf(),
      checkServerIdentity: (_, cert) => tls.checkServerIdentity(host, cert),
    });
    try {
      await once(socket, 'secureConnect');
      return 'trusted';
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    } finally {
      socket.destroy();
      server.close();
    }
  }

  for (const host of [...HOSTS, 'spa.localhost', '127.8.9.10', 'sub.id.example.test']) {
    it(`may sign for ${host}`, async () => {
      await make();
      expect(await trust(await forge(directory, host), host)).to.equal('trusted');
    });
  }

  for (const host of [
    'www.example.com',
    'example.test',
    'xid.example.test',
    'localhost.example.com',
    '192.0.2.8',
    '10.0.0.1',
    '2001:db8::8',
    '::2',
  ]) {
    it(`may not sign for ${host}: clients that trust it reject such a certificate`, async () => {
      await make();
      expect(await trust(await forge(directory, host), host)).to.equal('permitted subtree violation');
    });
  }

  it('serves the hosts that it was made for', async () => {
    const issued = await make();
    for (const host of HOSTS) expect(await trust(issued, host), host).to.equal('trusted');
    expect(issued.warnings).to.deep.equal([]);
  });

  it('is kept for hosts that it may sign for, and made anew, with a warning, for others', async () => {
    await make();
    const first = caOf();
    expect(
      (await make(['localhost', 'sub.id.example.test', '2001:DB8:0::7', '192.0.2.7'])).warnings,
    ).to.deep.equal([]);
    expect(caOf()).to.equal(first);
    const { warnings } = await make(['localhost', 'login.other.test', '198.51.100.1']);
    expect(caOf()).not.to.equal(first);
    expect(warnings.join())
      .to.contain('login.other.test, 198.51.100.1')
      .and.contain(`trust ${join(directory, 'ca.pem')} anew`);
    expect((await make(['localhost', 'login.other.test'])).warnings).to.deep.equal([]);
  });

  it('is made anew, with a warning, before it expires', async () => {
    await make();
    const { warnings, cert } = await make(HOSTS, 3_400 * 86_400_000);
    expect(warnings.join()).to.contain('expires');
    expect(cert).to.contain(caOf().trim());
  });

  it('is made anew, with a warning, if it may sign for any name', async () => {
    await writeUnconstrained(directory);
    const before = caOf();
    const { warnings, cert } = await make();
    expect(warnings.join()).to.contain('may not sign for').and.contain('anew');
    expect(caOf()).not.to.equal(before);
    expect(cert).to.contain(caOf().trim());
  });

  describe('with a damaged file', () => {
    const refusal = (hosts?: string[]) =>
      make(hosts).then(
        () => 'it was used',
        (thrown: unknown) => (thrown instanceof Error ? thrown.message : String(thrown)),
      );

    it('works without its key while there is nothing to sign, and names the missing key when there is', async () => {
      await make();
      rmSync(join(directory, 'ca-key.pem'));
      expect(await refusal()).to.equal('it was used');
      rmSync(join(directory, 'cert.pem'));
      expect(await refusal()).to.contain('ca-key.pem is missing');
      expect(existsSync(join(directory, 'ca-key.pem'))).to.equal(false);
    });

    it('is not replaced when its certificate is lost', async () => {
      await make();
      rmSync(join(directory, 'ca.pem'));
      expect(await refusal()).to.contain('ca.pem is missing');
      expect(existsSync(join(directory, 'ca.pem'))).to.equal(false);
    });

    it("is refused with another CA's key", async () => {
      await make();
      const { privateKey } = await newKeys();
      writeFileSync(join(directory, 'ca-key.pem'), await pemOf(privateKey));
      rmSync(join(directory, 'cert.pem'));
      expect(await refusal()).to.contain('ca-key.pem is not the key of');
    });

    for (const name of ['ca.pem', 'ca-key.pem', 'cert.pem', 'key.pem']) {
      for (const [what, content] of [
        ['empty', ''],
        ['no PEM', 'junk'],
      ]) {
        it(`names ${name} when it is ${what}`, async () => {
          await make();
          writeFileSync(join(directory, name), content ?? '');
          // The CA's key is only read to sign.
          if (name === 'ca-key.pem') rmSync(join(directory, 'cert.pem'));
          expect(await refusal()).to.contain(join(directory, name));
        });
      }
    }

    it('is made anew when a crash cut its making short', async () => {
      await make();
      for (const name of ['ca.pem', 'cert.pem', 'key.pem']) rmSync(join(directory, name));
      expect(await trust(await make(), 'localhost')).to.equal('trusted');
    });
  });

  it('signs the certificate of a server for its BASE_URL, with a warning in the log when it is new', async () => {
    const first = await startServer({ tenant, dataDir: directory });
    expect((await createAgent(first).get('/healthz')).status).to.equal(200);
    await first.stop();
    const second = await startServer({
      tenant,
      dataDir: directory,
      env: { BASE_URL: 'https://id.example.test' },
    });
    expect(second.logged()).to.contain('made a new CA');
    expect(second.ca).not.to.equal(first.ca);
    await second.stop();
  });
});
