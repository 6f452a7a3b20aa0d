import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import tls from 'node:tls';
import { expect } from 'chai';
import { localCertificate } from '../../src/capabilities/tls/authority.ts';

const DAY = 86_400_000;
const HOSTS = ['localhost', '127.0.0.1', '::1'];

describe('the local certificate authority', () => {
  let directory: string;
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'gatehouse-tls-'));
  });
  afterEach(() => rmSync(directory, { recursive: true, force: true }));

  const make = (hosts = HOSTS, after = 0) => localCertificate(directory, hosts, () => Date.now() + after);
  const read = (name: string) => new X509Certificate(readFileSync(join(directory, name)));

  it('makes a CA that may sign server certificates and no CA below it', async () => {
    await make();
    const ca = read('ca.pem');
    expect(ca.ca).to.equal(true);
    expect(ca.verify(ca.publicKey)).to.equal(true);
    expect(ca.toString()).to.contain('BEGIN CERTIFICATE');
    expect(Date.parse(ca.validTo) - Date.now()).to.be.above(9 * 365 * DAY);
  });

  it('makes a server certificate for the hosts, with a lifetime that browsers accept', async () => {
    await make();
    const cert = read('cert.pem');
    expect(cert.ca).to.equal(false);
    expect(cert.verify(read('ca.pem').publicKey)).to.equal(true);
    expect(cert.checkHost('localhost')).to.equal('localhost');
    expect(cert.checkIP('127.0.0.1')).to.equal('127.0.0.1');
    expect(cert.checkIP('::1')).to.equal('::1');
    expect(cert.checkHost('example.com')).to.equal(undefined);
    expect(cert.keyUsage).to.deep.equal(['1.3.6.1.5.5.7.3.1']);
    expect(Date.parse(cert.validTo) - Date.parse(cert.validFrom)).to.be.at.most(398 * DAY);
  });

  it('makes the keys readable by their owner only', async () => {
    await make();
    for (const name of ['ca-key.pem', 'key.pem']) {
      expect(statSync(join(directory, name)).mode & 0o777, name).to.equal(0o600);
    }
  });

  it('uses what it made before', async () => {
    const first = await make();
    expect(await make()).to.deep.equal(first);
  });

  it('renews the server certificate before it expires, with the same CA', async () => {
    await make();
    const [ca, cert] = [read('ca.pem'), read('cert.pem')];
    await make(HOSTS, 370 * DAY);
    expect(read('ca.pem').fingerprint256).to.equal(ca.fingerprint256);
    expect(read('cert.pem').fingerprint256).not.to.equal(cert.fingerprint256);
    expect(read('cert.pem').verify(ca.publicKey)).to.equal(true);
  });

  it('renews the server certificate when it does not cover a host', async () => {
    await make();
    await make([...HOSTS, 'id.example.test']);
    expect(read('cert.pem').checkHost('id.example.test')).to.equal('id.example.test');
  });

  it('is trusted by a client that trusts the CA, and by no other', async () => {
    const { cert, key, caFile } = await make();
    const server = tls.createServer({ cert, key }, (socket) => socket.end());
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const connect = async (ca?: string) => {
      const socket = tls.connect({
        host: '127.0.0.1',
        port,
        servername: 'localhost',
        ...(ca === undefined ? {} : { ca }),
      });
      try {
        await once(socket, 'secureConnect');
        return 'trusted';
      } catch (error) {
        return (error as NodeJS.ErrnoException).code;
      } finally {
        socket.destroy();
      }
    };
    expect(await connect(readFileSync(caFile, 'utf8'))).to.equal('trusted');
    expect(await connect()).not.to.equal('trusted');
    server.close();
  });
});
