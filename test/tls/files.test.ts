// TLS=files: the start warns about certificates that clients would refuse, and fails with those that cannot be served.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { localCertificate } from '../../src/capabilities/tls/authority.ts';
import { tlsOptions } from '../../src/capabilities/tls/tls-options.ts';

const DAY = 86_400_000;

describe('a certificate from files', () => {
  let directory: string;
  before(async () => {
    directory = mkdtempSync(join(tmpdir(), 'gatehouse-files-'));
    await localCertificate(directory, ['id.example.test', '192.0.2.7'], Date.now);
  });
  after(() => rmSync(directory, { recursive: true }));

  const file = (name: string) => join(directory, name);
  const read = (baseUrl: string, after = 0, keyFile = file('key.pem')) =>
    tlsOptions(
      {
        tls: { mode: 'files', certFile: file('cert.pem'), keyFile },
        baseUrl,
        dataDir: directory,
        host: '127.0.0.1',
      },
      () => Date.now() + after,
    );

  it('is served without a warning if it is for the host of BASE_URL', async () => {
    for (const host of ['https://id.example.test', 'https://192.0.2.7:8443']) {
      const { secure, warnings } = await read(host);
      expect(warnings).to.deep.equal([]);
      expect(secure?.cert).to.contain('BEGIN CERTIFICATE');
    }
  });

  for (const [what, baseUrl, after, said] of [
    ['that is for another host', 'https://login.example.test', 0, 'is not for login.example.test'],
    ['that is for another address', 'https://192.0.2.8', 0, 'is not for 192.0.2.8'],
    ['that has expired', 'https://id.example.test', 400 * DAY, 'expired on'],
    ['that is not valid yet', 'https://id.example.test', -2 * DAY, 'is valid from'],
  ] as const) {
    it(`${what} causes a warning`, async () => {
      const { warnings } = await read(baseUrl, after);
      expect(warnings).to.have.length(1);
      expect(warnings[0])
        .to.contain(`TLS_CERT: ${file('cert.pem')}`)
        .and.contain(said);
    });
  }

  it("with another certificate's key is refused", async () => {
    const refused = await read('https://id.example.test', 0, file('ca-key.pem')).catch(
      (error: Error) => error,
    );
    expect(refused).to.be.an('error').with.property('message').that.contains(file('ca-key.pem'));
  });
});
