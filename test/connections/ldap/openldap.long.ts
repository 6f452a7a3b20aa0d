// Users of a real OpenLDAP. Needs `slapd` on the machine (Debian's package `slapd`).
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { Client } from 'ldapts';
import { localCertificate } from '../../../src/tls/authority.ts';
import { createAgent } from '../../support/agent.ts';
import { REALM_GRANT } from '../../support/browser-logins.ts';
import { tenant as base, payload, token } from '../../support/flows.ts';
import { startServer, type TestServer } from '../../support/server.ts';

const BASE = 'dc=example,dc=test';
const ADMIN = `cn=admin,${BASE}`;

const LDIF = `
dn: ${BASE}
objectClass: dcObject
objectClass: organization
o: Example
dc: example

dn: uid=ada,${BASE}
objectClass: inetOrgPerson
uid: ada
cn: Ada Lovelace
sn: Lovelace
givenName: Ada
mail: ada@corp.example
userPassword: Ein-Passwort-2

dn: cn=staff,${BASE}
objectClass: groupOfNames
cn: staff
member: uid=ada,${BASE}

dn: cn=all,${BASE}
objectClass: groupOfNames
cn: all
member: cn=staff,${BASE}
`;

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

describe('a real OpenLDAP', () => {
  let folder: string;
  let slapd: ChildProcess;
  let server: TestServer;

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'gatehouse-slapd-'));
    const { cert, key, caFile } = await localCertificate(folder, ['localhost', '127.0.0.1'], Date.now);
    writeFileSync(join(folder, 'cert.pem'), cert);
    writeFileSync(join(folder, 'key.pem'), key);
    writeFileSync(join(folder, 'entries.ldif'), LDIF);
    mkdirSync(join(folder, 'db'));
    const schemas = ['core', 'cosine', 'inetorgperson'].map(
      (one) => `include /etc/ldap/schema/${one}.schema`,
    );
    const config = [
      ...schemas,
      'modulepath /usr/lib/ldap',
      'moduleload back_mdb',
      `TLSCertificateFile ${folder}/cert.pem`,
      `TLSCertificateKeyFile ${folder}/key.pem`,
      // The server accepts passwords only with TLS.
      'security simple_bind=128',
      'database mdb',
      `suffix "${BASE}"`,
      `rootdn "${ADMIN}"`,
      'rootpw administrator',
      `directory ${folder}/db`,
    ].join('\n');
    writeFileSync(join(folder, 'slapd.conf'), `${config}\n`);
    execFileSync('/usr/sbin/slapadd', ['-f', `${folder}/slapd.conf`, '-l', `${folder}/entries.ldif`]);
    const [plain, secure] = [await freePort(), await freePort()];
    const urls = `ldap://127.0.0.1:${plain} ldaps://127.0.0.1:${secure}`;
    slapd = spawn('/usr/sbin/slapd', ['-d', '0', '-f', `${folder}/slapd.conf`, '-h', urls], {
      stdio: 'ignore',
    });
    await listening(plain);
    const options = {
      LDAP_BASE: BASE,
      LDAP_BIND_USER: ADMIN,
      LDAP_BIND_PASSWORD: 'administrator',
      LDAP_CA: readFileSync(caFile, 'utf8'),
    };
    const connection = (name: string, more: object) => ({
      name,
      strategy: 'ad',
      enabled_clients: ['web'],
      options: { ...options, ...more },
    });
    server = await startServer({
      tenant: {
        ...base,
        connections: [
          connection('tls', { LDAP_URL: `ldaps://localhost:${secure}` }),
          connection('start-tls', { LDAP_URL: `ldap://localhost:${plain}` }),
          connection('plain', { LDAP_URL: `ldap://localhost:${plain}`, LDAP_STARTTLS: false }),
        ],
      },
    });
  });
  after(async () => {
    await server?.stop();
    slapd?.kill();
    await rm(folder, { recursive: true, force: true });
  });

  const ask = (realm: string, username: string, password = 'Ein-Passwort-2') =>
    token(createAgent(server), {
      grant_type: REALM_GRANT,
      client_id: 'web',
      client_secret: 'web-secret',
      realm,
      username,
      password,
      scope: 'openid profile email',
    });

  for (const realm of ['tls', 'start-tls']) {
    it(`logs in its users: ${realm}`, async () => {
      const claims = payload((await ask(realm, 'ada@corp.example')).json().id_token);
      expect(claims).to.include({ sub: `ad|${realm}|ada`, given_name: 'Ada', email: 'ada@corp.example' });
      const [identity] = await server.users.identitiesOf(`ad|${realm}|ada`);
      expect(identity?.attributes?.groups).to.deep.equal(['all', 'staff']);
      for (const [name, password] of [['ada', 'wrong'], ['nobody'], ['*']] as const) {
        expect((await ask(realm, name, password)).status, name).to.equal(403);
      }
    });
  }

  it('gets no password without TLS if it requires TLS', async () => {
    expect((await ask('plain', 'ada')).status).to.equal(503);
  });

  async function listening(port: number): Promise<void> {
    for (let tries = 0; tries < 200; tries++) {
      const client = new Client({ url: `ldap://127.0.0.1:${port}`, connectTimeout: 200 });
      try {
        await client.search('', { scope: 'base' });
        return;
      } catch {
        await new Promise((resolve) => setTimeout(resolve, 25));
      } finally {
        await client.unbind().catch(() => undefined);
      }
    }
    throw new Error('slapd does not answer');
  }
});
