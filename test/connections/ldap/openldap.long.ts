// Users of a real OpenLDAP. Needs `slapd` on the machine (Debian's package `slapd`).
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { Client } from 'ldapts';
import { localCertificate } from '../../../src/capabilities/tls/authority.ts';
import { createAgent } from '../../support/agent.ts';
import { REALM_GRANT } from '../../support/browser-logins.ts';
import { tenant as base, payload, token } from '../../support/flows.ts';
import { startServer, type TestServer } from '../../support/server.ts';
import { generous } from '../passwordless/tenant.ts';

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
  let secure: number;
  let options: Record<'LDAP_BASE' | 'LDAP_BIND_USER' | 'LDAP_BIND_PASSWORD' | 'LDAP_CA', string>;
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
    const plain = await freePort();
    secure = await freePort();
    const urls = `ldap://127.0.0.1:${plain} ldaps://127.0.0.1:${secure}`;
    slapd = spawn('/usr/sbin/slapd', ['-d', '0', '-f', `${folder}/slapd.conf`, '-h', urls], {
      stdio: 'ignore',
    });
    await listening(plain);
    options = {
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
        attackProtection: {
          rateLimits: { ...base.attackProtection.rateLimits, login: generous, token: generous },
        },
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
      expect(claims).to.include({ given_name: 'Ada', email: 'ada@corp.example' });
      expect(claims.sub).to.match(new RegExp(`^ad\\|${realm}\\|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`));
      const [identity] = await server.users.identitiesOf(String(claims.sub));
      expect(identity?.attributes?.groups).to.deep.equal(['all', 'staff']);
      for (const [name, password] of [['ada', 'wrong'], ['nobody'], ['*']] as const) {
        expect((await ask(realm, name, password)).status, name).to.equal(403);
      }
    });
  }

  it('shows that its entries have ids of their own', () => {
    expect(server.logged()).to.not.include('shows neither objectGUID nor entryUUID');
  });

  it('gets no password without TLS if it requires TLS', async () => {
    expect((await ask('plain', 'ada')).status).to.equal(503);
  });

  /** Makes changes as the administrator. */
  const change = async (change: (client: Client) => Promise<unknown>) => {
    const client = new Client({ url: `ldaps://localhost:${secure}`, tlsOptions: { ca: options.LDAP_CA } });
    try {
      await client.bind(ADMIN, 'administrator');
      await change(client);
    } finally {
      await client.unbind();
    }
  };
  const PERSON = { objectClass: 'inetOrgPerson', sn: 'P', userPassword: 'Ein-Passwort-2' };
  const create = (uid: string, more: Record<string, string | string[]> = {}) =>
    change((client) => client.add(`uid=${uid},${BASE}`, { ...PERSON, uid, cn: uid, ...more }));
  const subOf = async (username: string) => {
    const answer = await ask('tls', username);
    return answer.status === 200 ? String(payload(answer.json().id_token).sub) : answer.json().error;
  };

  it('gives a name to another person, who does not enter the account of the first', async () => {
    await create('reused');
    const first = await subOf('reused');
    await change((client) => client.del(`uid=reused,${BASE}`));
    await create('reused');
    const second = await subOf('reused');
    expect([first, second]).to.satisfy((all: string[]) => all.every((one) => one.startsWith('ad|tls|')));
    expect(second).to.not.equal(first);
    // Renaming keeps the entryUUID, and so the account.
    await change((client) => client.modifyDN(`uid=reused,${BASE}`, `uid=renamed,${BASE}`));
    expect(await subOf('renamed')).to.equal(second);
  });

  it('has users that are identified by their name, who are kept, but not for those who got their name since', async () => {
    const [connection] = (await server.store.collection('connections').list({})).records.filter(
      ({ name }) => name === 'tls',
    );
    const earlier = async (uid: string) =>
      server.users.fromUpstream({
        connection: 'tls',
        connectionId: connection?.id,
        provider: 'ad',
        isSocial: false,
        upstreamId: `tls|${uid}`,
        profile: { username: uid, dn: `uid=${uid},${BASE}` },
        rootAttributes: 'on_each_login',
        nonPersistent: [],
      });
    await create('kept');
    // The directory's time is in whole seconds.
    server.tick(2_000);
    await earlier('kept');
    await earlier('gone');
    expect(await subOf('kept')).to.equal('ad|tls|kept');
    await server.store.collection('users').update('ad|tls|gone', (user) => ({
      ...structuredClone(user),
      created_at: '2020-01-01T00:00:00.000Z',
    }));
    await create('gone');
    expect(await subOf('gone')).to.equal('access_denied');
  });

  it('compares prepared names, which are counted as one account: of sixty guesses ten are judged', async () => {
    await create('guessed', { mail: ['guessed@corp.example', 'g2@corp.example', 'g3@corp.example'] });
    const names = [
      'guessed',
      'GUESSED',
      'guessed@corp.example',
      'g2@corp.example',
      'g3@corp.example',
      '\uff47uessed',
    ];
    for (let index = 0; index < 54; index++) {
      const answer = await ask('start-tls', names[index % 6] ?? '', 'wrong');
      expect(answer.status, `guess ${index}`).to.be.oneOf([403, 429]);
    }
    for (const name of names) expect((await ask('start-tls', name)).status, name).to.be.oneOf([403, 429]);
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
