// Logins of directory users, at the hosted page and by the password grants.
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { loadTenantFile, readTenant, type TenantFault } from '../../../src/tenant/load.ts';
import { createAgent, readForm } from '../../support/agent.ts';
import { openPage, REALM_GRANT } from '../../support/browser-logins.ts';
import {
  tenant as base,
  follow,
  payload,
  responseOf,
  submitLogin,
  token,
  USER,
  webRequest,
} from '../../support/flows.ts';
import { startServer, type TestServer } from '../../support/server.ts';
import {
  BASE,
  type DirectoryEntry,
  SERVICE,
  SERVICE_PASSWORD,
  startDirectory,
  type TestDirectory,
} from './directory.ts';

const GUID = Buffer.from('00112233445566778899aabbccddeeff', 'hex');
const PASSWORD = 'Ein-Passwort-2';
const ADA = `uid=ada,ou=people,${BASE}`;

const entries = (): DirectoryEntry[] => [
  {
    dn: ADA,
    password: PASSWORD,
    attributes: {
      uid: 'ada',
      cn: 'Ada Lovelace',
      sn: 'Lovelace',
      givenName: 'Ada',
      mail: USER.email,
      employeeNumber: '42',
    },
  },
  {
    dn: `cn=Grace,ou=people,${BASE}`,
    password: PASSWORD,
    attributes: {
      sAMAccountName: 'grace',
      userPrincipalName: 'grace@corp.example',
      cn: 'Grace',
      displayName: 'Grace Hopper',
      objectGUID: GUID,
    },
  },
  { dn: `uid=twin,ou=a,${BASE}`, password: PASSWORD, attributes: { uid: 'twin', cn: 'Twin' } },
  { dn: `uid=twin,ou=b,${BASE}`, password: PASSWORD, attributes: { uid: 'twin', cn: 'Twin' } },
  // An entry whose name contains filter syntax.
  { dn: `uid=eve)(cn=*,ou=people,${BASE}`, password: PASSWORD, attributes: { uid: 'eve', cn: 'Eve' } },
  { dn: `cn=staff,ou=groups,${BASE}`, attributes: { cn: 'staff', member: [ADA] } },
  { dn: `cn=all,ou=groups,${BASE}`, attributes: { cn: 'all', member: [`cn=staff,ou=groups,${BASE}`] } },
  // Groups that are members of each other.
  { dn: `cn=ring,ou=groups,${BASE}`, attributes: { cn: 'ring', member: [`cn=all,ou=groups,${BASE}`] } },
];

describe('a connection to a directory', () => {
  let directory: TestDirectory;
  let plain: TestDirectory;
  let server: TestServer;

  before(async () => {
    directory = await startDirectory(entries());
    plain = await startDirectory(entries(), true);
    const bind = { LDAP_BIND_USER: SERVICE, LDAP_BIND_PASSWORD: SERVICE_PASSWORD };
    const common = { ...bind, LDAP_BASE: BASE, LDAP_CA: directory.ca };
    const connection = (name: string, strategy: string, options: object) => ({
      name,
      strategy,
      enabled_clients: ['web'],
      options: { ...common, ...options },
    });
    directory.entries.find(({ attributes }) => attributes.cn === 'staff')?.attributes.member;
    server = await startServer({
      tenant: {
        ...base,
        connections: [
          connection('corp', 'ad', {
            LDAP_URL: directory.ldapsUrl,
            domain_aliases: ['corp.example'],
            fieldsMap: { employee: 'employeeNumber' },
          }),
          connection('start-tls', 'auth0-adldap', { LDAP_URL: directory.ldapUrl }),
          connection('without-tls', 'ad', { LDAP_URL: plain.ldapUrl, LDAP_STARTTLS: false }),
          connection('no-start-tls', 'ad', { LDAP_URL: plain.ldapUrl }),
          connection('other-ca', 'ad', { LDAP_URL: directory.ldapsUrl, LDAP_CA: plain.ca }),
          connection('trusted', 'ad', {
            LDAP_URL: directory.ldapsUrl,
            should_trust_email_verified_connection: 'always_set_emails_as_verified',
          }),
          connection('gone', 'ad', { LDAP_URL: 'ldaps://localhost:1' }),
          // In the format of an export of the hosted service, where an agent connects to the directory.
          { name: 'agent', strategy: 'ad', enabled_clients: ['web'], options: { ips: [], kerberos: false } },
        ],
      },
    });
  });
  after(async () => {
    await server?.stop();
    await directory?.stop();
    await plain?.stop();
  });
  beforeEach(() => {
    directory.binds.length = 0;
    directory.filters.length = 0;
  });

  const ask = (realm: string, username: string, password = PASSWORD) =>
    token(createAgent(server), {
      grant_type: REALM_GRANT,
      client_id: 'web',
      client_secret: 'web-secret',
      realm,
      username,
      password,
      scope: 'openid profile email',
    });
  const claims = async (realm: string, username: string) =>
    payload((await ask(realm, username)).json().id_token);

  it('logs in at the hosted page, which offers neither sign-up nor password reset', async () => {
    const agent = createAgent(server);
    const page = await openPage(agent, server, webRequest({ connection: 'corp' }));
    expect(page.text).to.not.include('forgot-password').and.not.include('/signup');
    const { code } = responseOf(await submitLogin(agent, server, page, { email: 'ada', password: PASSWORD }));
    expect(code).to.be.a('string');
  });

  it('logs in by the password-realm grant, with id, profile and groups of the directory', async () => {
    expect(await claims('corp', 'ada')).to.include({
      sub: 'ad|corp|ada',
      name: 'Ada Lovelace',
      given_name: 'Ada',
      family_name: 'Lovelace',
      nickname: 'ada',
      email: USER.email,
    });
    expect(await server.users.get('ad|corp|ada')).to.include({ id: 'ad|corp|ada', username: 'ada' });
    const [identity] = await server.users.identitiesOf('ad|corp|ada');
    expect(identity?.attributes).to.deep.include({
      employee: '42',
      groups: ['all', 'ring', 'staff'],
      dn: ADA,
    });
  });

  it('identifies users of Active Directory by their GUID, found by account or principal name', async () => {
    const sub = 'ad|corp|33221100-5544-7766-8899-aabbccddeeff';
    expect(await claims('corp', 'grace')).to.include({ sub, name: 'Grace Hopper', nickname: 'grace' });
    expect(await claims('corp', 'grace@corp.example')).to.include({ sub });
  });

  it('never merges a user with another of the same address, and does not trust addresses as verified', async () => {
    const { sub, email, email_verified } = await claims('corp', USER.email);
    expect({ sub, email, email_verified }).to.deep.equal({
      sub: 'ad|corp|ada',
      email: USER.email,
      email_verified: false,
    });
    expect(await claims('trusted', 'ada')).to.include({ sub: 'ad|trusted|ada', email_verified: true });
  });

  it('rejects a wrong password, an unknown name, and a name of two entries alike', async () => {
    const answers = await Promise.all([
      ask('corp', 'grace', 'wrong'),
      ask('corp', 'nobody'),
      ask('corp', 'twin'),
    ]);
    for (const answer of answers) {
      expect(answer.status).to.equal(403);
      expect(answer.json()).to.deep.equal({
        error: 'invalid_grant',
        error_description: 'Wrong email or password.',
      });
    }
    // A bind was tried for each name, so that an unknown one takes as long.
    expect(directory.binds.filter(({ dn }) => dn.toLowerCase() !== SERVICE.toLowerCase())).to.have.length(3);
  });

  it('never binds without a password, which a directory accepts as anonymous', async () => {
    expect((await ask('corp', 'ada', '')).status).to.equal(400);
    expect(directory.binds.map(({ password }) => password)).to.not.include('');
  });

  it('escapes filter syntax in the typed name', async () => {
    for (const name of ['*', 'a*', 'ada)(uid=*', ')(|(uid=*', '\\2a', 'ada\0']) {
      expect((await ask('corp', name)).status, name).to.equal(403);
    }
    expect((await ask('corp', '*')).status).to.equal(403);
    expect(directory.filters.every((filter) => filter.startsWith('(|('))).to.equal(true);
  });

  it('escapes filter syntax in the DN of an entry when it searches for groups', async () => {
    expect(await claims('corp', 'eve')).to.include({ sub: 'ad|corp|eve' });
    const [identity] = await server.users.identitiesOf('ad|corp|eve');
    expect(identity?.attributes).to.deep.include({ groups: [], dn: `uid=eve)(cn=*,ou=people,${BASE}` });
    expect(directory.filters.some((filter) => filter.includes('(member=uid=eve)'))).to.equal(false);
  });

  it('counts wrong passwords, and locks the account', async () => {
    for (let tries = 0; tries < 10; tries++) await ask('start-tls', 'locked', 'wrong');
    expect((await ask('start-tls', 'locked')).status).to.equal(429);
  });

  it('uses TLS from the start or StartTLS; none only if the operator allowed the address', async () => {
    expect((await ask('start-tls', 'ada')).status).to.equal(200);
    expect((await ask('without-tls', 'ada')).status).to.equal(200);
    const closed = await startServer({
      tenant: { ...base, connections: [] },
      env: { OUTBOUND_ALLOW: '192.0.2.0/24' },
    });
    await closed.stop();
  });

  it('sends no password without TLS, or to a server whose certificate is not trusted', async () => {
    plain.binds.length = 0;
    for (const realm of ['no-start-tls', 'other-ca']) {
      const answer = await ask(realm, 'ada');
      expect(answer.status, realm).to.equal(503);
      expect(answer.json().error).to.equal('temporarily_unavailable');
    }
    expect([...plain.binds, ...directory.binds]).to.deep.equal([]);
  });

  it('returns 503 while the directory is down, shows it on the page, and locks nobody', async () => {
    for (let tries = 0; tries < 12; tries++) expect((await ask('gone', 'ada')).status).to.equal(503);
    expect((await ask('agent', 'ada')).status).to.equal(503);
    const agent = createAgent(server);
    const page = await openPage(agent, server, webRequest({ connection: 'gone' }));
    const answer = await submitLogin(agent, server, page, { email: 'ada', password: PASSWORD });
    expect(answer.status).to.equal(503);
    expect(answer.text).to.include('role="alert"');
  });

  it('keeps idle connections of the service account, and reconnects if the directory closed them', async () => {
    await ask('corp', 'ada');
    directory.binds.length = 0;
    await ask('corp', 'ada');
    expect(directory.binds.map(({ dn }) => dn.replaceAll(', ', ','))).to.deep.equal([ADA]);
    directory.hangUp();
    expect((await ask('corp', 'ada')).status).to.equal(200);
    server.tick(120_000);
    expect((await ask('corp', 'ada')).status).to.equal(200);
  });

  it('updates the profile at each login, and keeps the user', async () => {
    const entry = directory.entries[0] as DirectoryEntry;
    await ask('corp', 'ada');
    entry.attributes.cn = 'Ada King';
    expect(await claims('corp', 'ada')).to.include({ sub: 'ad|corp|ada', name: 'Ada King' });
    entry.attributes.cn = 'Ada Lovelace';
  });

  /** Types a name into the page that asks for it first. @returns the password page. */
  const identified = async (agent: ReturnType<typeof createAgent>, name: string) => {
    const { action, fields } = readForm(await openPage(agent, server, webRequest()), 'identifier');
    const next = await agent.request(action, { form: { ...fields, identifier: name } });
    return follow(agent, next, server.url);
  };

  it('is selected by the domain of an address on the identifier page', async () => {
    const agent = createAgent(server);
    const page = await identified(agent, 'grace@corp.example');
    expect(page.text).to.match(/<input id="username"[^>]* value="grace@corp\.example"[^>]* readonly/);
    expect(page.text).to.not.include('forgot-password').and.not.include('/signup');
    const user = { email: 'grace@corp.example', password: PASSWORD };
    expect(responseOf(await submitLogin(agent, server, page, user)).code).to.be.a('string');
    expect(directory.binds.map(({ dn }) => dn)).to.include(`cn=Grace,ou=people,${BASE}`);
  });

  it('is not asked for an address of another domain', async () => {
    const agent = createAgent(server);
    const page = await identified(agent, USER.email);
    expect(page.text).to.include('forgot-password');
    expect(responseOf(await submitLogin(agent, server, page)).code).to.be.a('string');
    expect(directory.binds).to.deep.equal([]);
  });

  it('has no sign-up and no password reset', async () => {
    const agent = createAgent(server);
    const page = await openPage(agent, server, webRequest({ connection: 'corp', screen_hint: 'signup' }));
    const { action, fields } = readForm(page, 'password');
    const form = { ...fields, email: 'x@corp.example', password: PASSWORD };
    await agent.request(action.replace('/login', '/signup'), { form });
    expect(await server.users.findInConnection({ name: 'corp' }, 'x@corp.example')).to.equal(undefined);
    const forgot = await agent.request(action.replace('/login', '/forgot-password'), { form });
    expect(forgot.status).to.equal(400);
    for (const path of ['/dbconnections/signup', '/dbconnections/change_password']) {
      const json = { client_id: 'web', connection: 'corp', email: 'x@corp.example', password: PASSWORD };
      expect((await agent.request(path, { json })).status, path).to.be.within(400, 404);
    }
  });
});

describe('the example configuration of a directory', () => {
  it('logs in a user of the directory', async () => {
    const path = fileURLToPath(new URL('../../../config/examples/directory.yaml', import.meta.url));
    const directory = await startDirectory(entries(), true);
    const env = { LDAP_URL: directory.ldapUrl, LDAP_PASSWORD: SERVICE_PASSWORD };
    const { tenant } = await loadTenantFile(path, env);
    const [connection] = tenant.connections;
    if (connection !== undefined) connection.options.LDAP_BIND_USER = SERVICE;
    const server = await startServer({ tenant });
    const answer = await token(createAgent(server), {
      grant_type: REALM_GRANT,
      client_id: 'intranet',
      client_secret: 'an-example-secret',
      realm: 'corp',
      username: USER.email,
      password: PASSWORD,
      scope: 'openid',
    });
    const byDefault = await token(createAgent(server), {
      grant_type: 'password',
      client_id: 'intranet',
      client_secret: 'an-example-secret',
      username: USER.email,
      password: PASSWORD,
      scope: 'openid',
    });
    await server.stop();
    await directory.stop();
    expect(payload(byDefault.json().id_token).sub).to.equal('ad|corp|ada');
    expect(payload(answer.json().id_token).sub).to.equal('ad|corp|ada');
  });
});

describe('options of a connection to a directory', () => {
  const refused: [string, Record<string, unknown>][] = [
    ['LDAP_URL', { LDAP_URL: 'https://directory.example' }],
    ['LDAP_URL', { LDAP_URL: 'ldaps://user:password@directory.example' }],
    ['LDAP_BASE', { LDAP_URL: undefined }],
    ['LDAP_BASE', { LDAP_BASE: '' }],
    ['LDAP_BIND_PASSWORD', { LDAP_BIND_USER: SERVICE }],
    ['LDAP_USER_BY_NAME', { LDAP_USER_BY_NAME: '(uid=ada)' }],
    ['LDAP_USER_BY_NAME', { LDAP_USER_BY_NAME: '(&(uid={0})' }],
    ['LDAP_USER_BY_NAME', { LDAP_USER_BY_NAME: '(uid={0})(a=b)' }],
    ['LDAP_SEARCH_GROUPS', { LDAP_SEARCH_GROUPS: 'member={0}' }],
    ['LDAP_CA', { LDAP_CA: 'no certificate' }],
  ];
  for (const [name, options] of refused) {
    it(`are rejected at start if ${name} is invalid: ${JSON.stringify(options)}`, () => {
      const whole = { LDAP_URL: 'ldaps://directory.example', LDAP_BASE: BASE, ...options };
      const connections = [{ name: 'corp', strategy: 'ad', options: whole }];
      let faults: readonly string[] = [];
      try {
        readTenant({ ...base, connections });
      } catch (thrown) {
        faults = (thrown as TenantFault).faults;
      }
      expect(faults.join()).to.include(name);
    });
  }
});
