import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { parse } from 'yaml';
import { systemRandom } from '../../src/runtime/secrets.ts';
import type { Store } from '../../src/store/contract.ts';
import { applyTenant } from '../../src/tenant/apply.ts';
import { productionFaults } from '../../src/tenant/examples.ts';
import { parseTenant, readTenant, TenantFault } from '../../src/tenant/load.ts';
import { exportTenant } from '../../src/tenant/tenant-export.ts';
import { createAgent } from '../support/agent.ts';
import { tenant, token } from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';

const EXAMPLE = readFileSync(new URL('../../config/tenant.yaml', import.meta.url), 'utf8');

function faultsOf(read: () => unknown): readonly string[] {
  try {
    read();
  } catch (thrown) {
    if (thrown instanceof TenantFault) return thrown.faults;
    throw thrown;
  }
  return [];
}

describe('the tenant file', () => {
  it('that comes with Gatehouse has no faults and no unknown keys', () => {
    expect(parseTenant(EXAMPLE, {}).warnings).to.deep.equal([]);
  });

  it('may name the setting that lets requests contain the name of an organization, without a warning', () => {
    const file = { tenant: { allow_organization_name_in_authentication_api: true } };
    expect(readTenant(file).warnings).to.deep.equal([]);
    const faults = faultsOf(() =>
      readTenant({ tenant: { allow_organization_name_in_authentication_api: 'yes' } }),
    );
    expect(faults.join()).to.contain('allow_organization_name_in_authentication_api');
  });

  it('that comes with Gatehouse is rejected in production', () => {
    const faults = productionFaults(parseTenant(EXAMPLE, {}).tenant, {});
    expect(faults.join('\n'))
      .to.contain('example-web')
      .and.contain('example-m2m')
      .and.contain('users:')
      .and.contain('SMTP_URL:');
  });

  it('with a provider on this machine is accepted in production only when OUTBOUND_ALLOW names it', () => {
    const options = {
      authorizationURL: 'https://idp.example.test/authorize',
      tokenURL: 'http://localhost:4000/token',
      client_id: 'ours',
    };
    const file = readTenant({ connections: [{ name: 'acme', strategy: 'oauth2', options }] }).tenant;
    const faults = (outboundAllow?: string[]) => productionFaults(file, { mail: {}, outboundAllow });
    const notAllowed = [
      'connections[0].options.tokenURL: localhost is not called in production without OUTBOUND_ALLOW',
    ];
    expect(faults()).to.deep.equal(notAllowed);
    expect(faults(['10.0.0.0/8'])).to.deep.equal(notAllowed);
    expect(faults(['127.0.0.1'])).to.deep.equal([]);
    expect(faults(['localhost'])).to.deep.equal([]);
  });

  it('takes values from the environment, in both notations', () => {
    const text = "tenant: { friendly_name: '${NAME} and ##OTHER##' }";
    expect(parseTenant(text, { NAME: 'one', OTHER: 'two' }).tenant.tenant.friendly_name).to.equal(
      'one and two',
    );
  });

  it('reports every variable that is not set, with its path', () => {
    const faults = faultsOf(() => parseTenant("clients: [{ client_secret: '${A}', name: '##B##' }]", {}));
    expect(faults).to.deep.equal([
      'clients[0].client_secret: the environment variable A is not set (the text itself is \\${A})',
      'clients[0].name: the environment variable B is not set (the text itself is \\##B##)',
    ]);
  });

  it('takes a variable after a backslash literally', () => {
    const text = "tenant: { friendly_name: '\\${NAME} and \\##NAME##' }";
    expect(parseTenant(text, { NAME: 'one' }).tenant.tenant.friendly_name).to.equal('${NAME} and ##NAME##');
  });

  it('reports every fault at once, with its path', () => {
    const faults = faultsOf(() =>
      readTenant({
        clients: [{ description: 'no name' }, { client_id: 'x', name: 'X', app_type: 'toaster' }],
        databases: [{ name: '-bad-' }],
      }),
    );
    expect(faults.join('\n'))
      .to.contain('clients.0.name')
      .and.contain('clients.1.app_type')
      .and.contain('databases.0.name');
  });

  it('is rejected for SAML settings that cannot be followed', () => {
    const samlp = {
      signingCert: 'no certificate',
      recipient: 'javascript:alert(1)',
      signatureAlgorithm: 'hmac-sha1',
    };
    const faults = faultsOf(() =>
      readTenant({ clients: [{ client_id: 'x', name: 'X', addons: { samlp } }] }),
    ).join('\n');
    for (const key of Object.keys(samlp)) expect(faults).to.contain(`clients.0.addons.samlp.${key}`);
  });

  it('may name as default directory any connection, with a warning if that checks no passwords', () => {
    const ldap = { LDAP_URL: 'ldaps://directory.example', LDAP_BASE: 'dc=example' };
    const connections = [
      { name: 'corp', strategy: 'ad', options: ldap },
      { name: 'entra', strategy: 'samlp' },
    ];
    const warningsOf = (name: string) =>
      readTenant({
        tenant: { default_directory: name },
        databases: [{ name: 'people' }],
        connections,
      }).warnings.filter((one) => one.includes('default_directory'));
    expect(warningsOf('corp')).to.deep.equal([]);
    expect(warningsOf('people')).to.deep.equal([]);
    expect(warningsOf('entra')).to.deep.equal([
      'tenant.default_directory: entra checks no passwords here (samlp): the grant password fails',
    ]);
  });

  it('is rejected for a SAML application with unsigned assertions and responses', () => {
    const read = (samlp: object) => () =>
      readTenant({ clients: [{ client_id: 'x', name: 'X', addons: { samlp } }] });
    for (const unsigned of [{ signAssertion: false }, { signAssertion: false, signResponse: false }]) {
      expect(faultsOf(read(unsigned)).join('\n')).to.contain('clients.0.addons.samlp.signAssertion');
    }
    expect(read({ signAssertion: false, signResponse: true })().warnings).to.deep.equal([]);
    // Unknown settings in it are still reported.
    expect(read({ sparkle: true })().warnings.join()).to.contain('addons.samlp.sparkle');
  });

  it('keeps unknown keys, and warns of each', () => {
    const { tenant: read, warnings } = readTenant({
      moon: 'full',
      tenant: { tides: 'high' },
      clients: [{ client_id: 'x', name: 'X', sparkle: true }],
    });
    expect(warnings.join('\n'))
      .to.contain('moon')
      .and.contain('tenant.tides')
      .and.contain('clients[0].sparkle');
    expect(read).to.have.property('moon', 'full');
    expect(read.clients[0]).to.have.property('sparkle', true);
  });

  for (const [what, bucket] of [
    ['is never full again', { capacity: 10, perMinute: 1e-300 }],
    ['is emptied by the first request', { capacity: 0.5, perMinute: 1 }],
    ['has no finite size', { capacity: 1e300, perMinute: 1 }],
  ] as const) {
    it(`rejects a bucket that ${what}`, () => {
      const read = () => readTenant({ attackProtection: { rateLimits: { login: bucket } } });
      expect(read).to.throw().with.property('faults').with.length(1);
    });
  }

  it('warns of functions that do not work in a custom database without their script', () => {
    const warningsOf = (names: string[], more = {}) => {
      const customScripts = Object.fromEntries(names.map((name) => [name, 'module.exports = () => {}']));
      const options = { enabledDatabaseCustomization: true, customScripts, ...more };
      return readTenant({ databases: [{ name: 'far', options }] }).warnings;
    };
    expect(warningsOf(['login', 'get_user', 'create', 'change_password'])).to.deep.equal([]);
    expect(warningsOf(['login', 'get_user'], { import_mode: true })).to.deep.equal([]);
    const missed = warningsOf(['login']).join('\n');
    for (const name of ['create', 'change_password', 'get_user'])
      expect(missed).to.contain(`databases[0].options.customScripts.${name}: without it`);
    expect(warningsOf(['login', 'get_user', 'change_password'], { disable_signup: true })).to.deep.equal([]);
  });

  it('warns of password reset links with a lifetime of more than a day', () => {
    const warningsOf = (template: string, urlLifetimeInSeconds: number) =>
      readTenant({ emailTemplates: [{ template, urlLifetimeInSeconds }] }).warnings;
    expect(warningsOf('reset_email', 86_400)).to.deep.equal([]);
    expect(warningsOf('verify_email', 432_000)).to.deep.equal([]);
    expect(warningsOf('reset_email', 432_000)).to.have.length(1);
    expect(warningsOf('reset_email', 432_000)[0]).to.match(
      /^emailTemplates\[0\]\.urlLifetimeInSeconds: .*86400/,
    );
  });

  it('warns of connections with unsupported strategies, with which nobody can log in', () => {
    const { warnings } = readTenant({
      databases: [{ name: 'people' }],
      connections: [
        { name: 'email', strategy: 'email' },
        { name: 'files', strategy: 'office365' },
        { name: 'sms', strategy: 'sms' },
        { name: 'work', strategy: 'sharepoint' },
      ],
    });
    expect(warnings).to.deep.equal([
      'connections[1].strategy: office365 is not built in: nobody can log in with files',
      'connections[3].strategy: sharepoint is not built in: nobody can log in with work',
    ]);
  });

  it('warns of an e-mail provider that is not built in, unless it is disabled', () => {
    const warnings = (emailProvider: object) => readTenant({ emailProvider }).warnings;
    for (const name of ['smtp', 'custom']) expect(warnings({ name, credentials: {} })).to.deep.equal([]);
    const elsewhere = { name: 'elsewhere', credentials: {} };
    expect(warnings({ ...elsewhere, enabled: false })).to.deep.equal([]);
    expect(warnings(elsewhere)).to.deep.equal([
      'emailProvider: elsewhere is not built in: set SMTP_URL to its SMTP endpoint',
    ]);
  });

  it('is rejected for log streams that cannot be sent, and warns of unsupported types', () => {
    const read = (stream: object) => () => readTenant({ logStreams: [{ name: 'Stream', ...stream }] });
    expect(faultsOf(read({ type: 'http', sink: { httpEndpoint: 'ftp://x' } })).join()).to.match(
      /^logStreams\[0\]\.sink\.httpEndpoint: /,
    );
    expect(faultsOf(read({ type: 'file', sink: { path: '../x' } })).join()).to.match(
      /^logStreams\[0\]\.sink\.path: /,
    );
    const masked = {
      type: 'http',
      sink: { httpEndpoint: 'https://x.test' },
      pii_config: { log_fields: ['x'] },
    };
    expect(faultsOf(read(masked)).join()).to.contain('logStreams[0].pii_config.log_fields');
    expect(read({ type: 'elsewhere', sink: { anything: 1 } })().warnings).to.deep.equal([
      'logStreams[0].type: elsewhere is not built in: nothing is sent to Stream',
    ]);
  });

  it('warns of languages that there are not, with the one that is shown in their place', () => {
    const enabled_locales = ['en', 'de-AT', 'bs', 'zgh', 'en_US', 'ar'];
    const { warnings } = readTenant({ tenant: { enabled_locales } });
    expect(warnings.filter((one) => !one.includes('[2]'))).to.deep.equal([
      'tenant.enabled_locales[1]: de-AT has no texts of its own: those of de are shown',
      'tenant.enabled_locales[3]: there are no texts in zgh, and no language near it: it is left out',
      'tenant.enabled_locales[4]: there are no texts in en_US, and no language near it: it is left out',
    ]);
    expect(warnings.join()).to.match(/\[2\]: there are no texts in bs/);
  });

  it('leaves out unknown keys of sections that the Management API refuses them in, with a warning for each', () => {
    const rule = { action: { block: true }, scope: 'tenant' };
    const { tenant: read, warnings } = readTenant({
      tenant: { account_page: { enabled: false, colour: 'red' } },
      networkACLs: [
        { description: 'a', active: false, rule, moon: 'full' },
        { description: 'b', active: false, rule, tides: 1, sun: 2 },
      ],
      logStreams: [
        { id: 'lst_1', name: 's', type: 'http', sink: { httpEndpoint: 'https://a.test/', retries: 3 } },
      ],
    });
    expect(warnings.map((warning) => warning.split(' ')[0])).to.have.members([
      'tenant.account_page.colour',
      'networkACLs[0].moon',
      'networkACLs[1].tides',
      'networkACLs[1].sun',
      'logStreams[0].sink.retries',
    ]);
    expect(read.networkACLs?.map(Object.keys)).to.deep.equal(
      Array(2).fill(['description', 'active', 'rule']),
    );
    expect(read.tenant.account_page).to.include({ enabled: false });
  });

  it('reports the faults that are left beside unknown keys', () => {
    const acl = {
      description: 'a',
      active: 'no',
      rule: { action: { block: true }, scope: 'tenant' },
      moon: 1,
    };
    expect(faultsOf(() => readTenant({ networkACLs: [acl] })).join()).to.contain('networkACLs.0.active');
  });

  it('refuses an unknown key of a custom claim, without which the claim could be for everybody', () => {
    const plan = { claim: 'https://a.test/plan', value: 'user.app_metadata.plan', to: ['id_token'] };
    const claim = { ...plan, client: ['billing'] };
    expect(faultsOf(() => readTenant({ customClaims: [claim] })).join()).to.match(/customClaims\.0.*client/);
  });

  it('warns of unknown keys at any depth', () => {
    const { tenant: read, warnings } = readTenant({
      branding: { colors: { primry: '#000000' } },
      clients: [{ client_id: 'x', name: 'X', refresh_token: { leewayy: 1 } }],
      databases: [{ name: 'd', options: { disable_signups: true, password_history: { enabled: true } } }],
      resourceServers: [{ name: 'a', identifier: 'a', scopes: [{ value: 'r', desc: 'Read' }] }],
      users: [
        {
          email: 'a@b.c',
          password: 'p',
          permissions: [{ resource_server_identifier: 'a', permission_name: 'r', source: 'role' }],
          user_metadata: { anything: { goes: true } },
        },
      ],
    });
    expect(warnings.map((warning) => warning.split(' ')[0])).to.have.members([
      'branding.colors.primry',
      'clients[0].refresh_token.leewayy',
      'databases[0].options.disable_signups',
      'databases[0].options.password_history.enabled',
      'resourceServers[0].scopes[0].desc',
      'users[0].permissions[0].source',
    ]);
    expect(read.databases[0]?.options.password_history).to.have.property('enabled', true);
  });

  it('that is not YAML, or cannot be read, is reported in words', () => {
    expect(faultsOf(() => parseTenant('a: [', {})).join()).to.contain('not valid YAML');
    expect(faultsOf(() => parseTenant('- a\n- b', {})).length).to.be.above(0);
  });

  const contradictions: [string, object, RegExp][] = [
    [
      'two applications with one id',
      {
        clients: [
          { client_id: 'x', name: 'A' },
          { client_id: 'x', name: 'B' },
        ],
      },
      /^clients\[1\]: x is there twice$/,
    ],
    [
      'two APIs with one identifier',
      {
        resourceServers: [
          { name: 'A', identifier: 'x' },
          { name: 'B', identifier: 'x' },
        ],
      },
      /^resourceServers\[1\]: x is there twice$/,
    ],
    [
      'two connections with one name',
      { databases: [{ name: 'x' }], connections: [{ name: 'x', strategy: 'email' }] },
      /^connections\[0\]: x is there twice$/,
    ],
    [
      'a database with neither passwords nor codes',
      { databases: [{ name: 'x', options: { authentication_methods: { password: { enabled: false } } } }] },
      /^databases\[0\]\.options: authentication_methods\.password can be disabled with/,
    ],
    [
      'a database that logs in with addresses that are not unique',
      {
        databases: [
          { name: 'x', options: { attributes: { email: { identifier: { active: true }, unique: false } } } },
        ],
      },
      /^databases\[0\]\.options: attribute email must be unique to be an identifier$/,
    ],
    [
      'two applications with one name',
      {
        clients: [
          { client_id: 'x', name: 'A' },
          { client_id: 'y', name: 'A' },
        ],
      },
      /^clients\[1\]: A is there twice$/,
    ],
    [
      'two APIs with one id',
      {
        resourceServers: [
          { id: 'rs', name: 'A', identifier: 'x' },
          { id: 'rs', name: 'B', identifier: 'y' },
        ],
      },
      /^resourceServers\[1\]: rs is there twice$/,
    ],
    [
      'an organization with an unknown connection',
      { organizations: [{ name: 'o', connections: [{ name: 'nowhere' }] }] },
      /^organizations\[0\]\.connections: nowhere is no connection here$/,
    ],
    [
      'two organizations with one name',
      { organizations: [{ name: 'o' }, { name: 'o' }] },
      /^organizations\[1\]: o is there twice$/,
    ],
    [
      'two organizations with one domain',
      {
        organizations: [
          { name: 'o', discovery_domains: [{ domain: 'a.test' }] },
          { name: 'p', discovery_domains: [{ domain: 'A.test' }] },
        ],
      },
      /^organizations\[1\]\.discovery_domains\[0\]: a\.test is there twice$/,
    ],
    [
      'two grants of one application for one API, by id and by name',
      {
        clients: [{ client_id: 'x', name: 'X' }],
        resourceServers: [{ name: 'A', identifier: 'a' }],
        clientGrants: [
          { client_id: 'x', audience: 'a', scope: ['read'] },
          { client_id: 'X', audience: 'a', scope: ['write'] },
        ],
      },
      /^clientGrants\[1\]: x at a is there twice$/,
    ],
    [
      'two users with one address in one database',
      {
        databases: [{ name: 'd' }],
        users: [
          { email: 'a@b.test', password: 'p' },
          { email: 'A@b.test', password: 'q', connection: 'd' },
        ],
      },
      /^users\[1\]: a@b.test in d is there twice$/,
    ],
    [
      "the development page's own application",
      { clients: [{ client_id: 'gatehouse-try-login', name: 'X' }] },
      /clients\[0\].client_id: gatehouse-try-login/,
    ],
    [
      'a database among the other connections, where its options would not be checked',
      { connections: [{ name: 'd', strategy: 'auth0', options: { passwordPolicy: 'bogus' } }] },
      /connections\[0\].strategy: d is a database/,
    ],
    [
      'a callback that is not a URI',
      { clients: [{ client_id: 'x', name: 'X', callbacks: ['not a uri'] }] },
      /callbacks: not a uri/,
    ],
    [
      'a callback with a fragment',
      { clients: [{ client_id: 'x', name: 'X', callbacks: ['https://a.test/#b'] }] },
      /callbacks/,
    ],
    [
      'a callback that is a script',
      { clients: [{ client_id: 'x', name: 'X', callbacks: ['javascript:alert(1)'] }] },
      /callbacks/,
    ],
    [
      "a callback that shows a page's source",
      { clients: [{ client_id: 'x', name: 'X', callbacks: ['view-source:https://a.test'] }] },
      /callbacks/,
    ],
    [
      'a connection for an unknown application',
      { databases: [{ name: 'x', enabled_clients: ['nobody'] }] },
      /^databases\[0\].enabled_clients: nobody is no application here$/,
    ],
    ['an unknown default directory', { tenant: { default_directory: 'x' } }, /default_directory: x/],
    ['an unknown default audience', { tenant: { default_audience: 'x' } }, /default_audience: x/],
    ['a user without a database', { users: [{ email: 'a@b.c', password: 'x' }] }, /users\[0\]/],
    [
      'an HS256 API without a secret',
      { resourceServers: [{ name: 'A', identifier: 'a', signing_alg: 'HS256' }] },
      /signing_secret/,
    ],
    [
      'a key that is neither PEM nor JWK',
      {
        clients: [
          {
            client_id: 'x',
            name: 'X',
            client_authentication_methods: { private_key_jwt: { credentials: [{}] } },
          },
        ],
      },
      /either pem or jwk/,
    ],
  ];
  for (const [what, file, fault] of contradictions) {
    it(`is rejected for ${what}`, () => {
      expect(faultsOf(() => readTenant(file)).join('\n')).to.match(fault);
    });
  }
});

describe('applying a tenant file', () => {
  let server: TestServer;
  let store: Store;
  beforeEach(async () => {
    server = await startServer({ tenant });
    store = server.store;
  });
  afterEach(() => server.stop());

  const apply = async (file: object, mode: 'create-missing' | 'match', into = store) => {
    const { changes, notes } = await applyTenant(
      {
        store: into,
        users: server.users,
        random: systemRandom,
        managementAudience: 'https://localhost/api/v2/',
      },
      readTenant(file).tenant,
      {
        mode,
        users: true,
      },
    );
    return [...changes, ...notes];
  };
  const client = (id: string) => store.collection('clients').get(id);

  it('at start creates what is missing and changes no existing record', async () => {
    await apply(
      {
        ...tenant,
        clients: [
          { ...tenant.clients[0], name: 'Changed' },
          ...tenant.clients.slice(1),
          { client_id: 'new', name: 'New' },
        ],
      },
      'create-missing',
    );
    expect((await client('spa'))?.name).to.equal('Single page');
    expect((await client('new'))?.name).to.equal('New');
  });

  it('on request makes the store equal to the file, and keeps users', async () => {
    await apply(
      {
        clients: [{ client_id: 'spa', name: 'Changed', app_type: 'spa' }],
        databases: [{ name: 'users', enabled_clients: ['spa'] }],
      },
      'match',
    );
    expect((await client('spa'))?.name).to.equal('Changed');
    expect(await client('web')).to.equal(undefined);
    expect((await store.collection('resourceServers').list()).records).to.deep.equal([]);
    expect(await store.collection('users').count()).to.equal(3);
  });

  it('keeps unknown keys in the store and in its export', async () => {
    await apply(
      {
        moon: { phase: 'full' },
        tenant: { tides: 'high' },
        clients: [{ client_id: 'x', name: 'X', sparkle: true }],
        databases: [{ name: 'users', salt: 'sea' }],
        resourceServers: [{ name: 'A', identifier: 'a', colour: 'blue' }],
        clientGrants: [{ client_id: 'x', audience: 'a', until: 'later' }],
        organizations: [{ id: 'org_a', name: 'a', members: 3 }],
      },
      'match',
    );
    const exported = parse(await exportTenant(store));
    expect(exported).to.have.nested.property('moon.phase', 'full');
    expect(exported).to.have.nested.property('tenant.tides', 'high');
    expect(exported).to.have.nested.property('clients[0].sparkle', true);
    expect(exported).to.have.nested.property('databases[0].salt', 'sea');
    expect(exported).to.have.nested.property('resourceServers[0].colour', 'blue');
    expect(exported).to.have.nested.property('clientGrants[0].until', 'later');
    expect(exported).to.have.nested.property('organizations[0].members', 3);
  });

  it('exports a file that applies to an identical tenant', async () => {
    const exported = await exportTenant(store);
    await apply(parse(exported), 'match');
    expect(parse(await exportTenant(store))).to.deep.equal(parse(exported));
  });

  describe('with applications that have a name alone', () => {
    const file = {
      clients: [
        { name: 'My App', app_type: 'spa' },
        { name: 'My Job', app_type: 'non_interactive' },
      ],
      databases: [{ name: 'users', enabled_clients: ['My App'] }],
      resourceServers: [{ name: 'API', identifier: 'https://api.test' }],
      clientGrants: [{ client_id: 'My Job', audience: 'https://api.test', scope: [] }],
      organizations: [{ name: 'acme', connections: [{ name: 'users' }] }],
      roles: [{ name: 'reader' }],
      actions: [{ name: 'one', code: 'exports.onExecutePostLogin = () => {};' }],
    };
    const idOf = async (name: string) =>
      (await store.collection('clients').list()).records.find((one) => one.name === name)?.client_id ?? '';

    it('makes their ids once, and says which', async () => {
      const first = await apply(file, 'match');
      const [app, job] = [await idOf('My App'), await idOf('My Job')];
      expect(first).to.include(`+ clients.${app} (My App)`).and.include(`+ clients.${job} (My Job)`);
      expect(app)
        .to.match(/^[0-9a-f]{32}$/)
        .and.not.equal(job);
      const grants = (await store.collection('clientGrants').list()).records;
      expect(grants.map(({ client_id }) => client_id)).to.deep.equal([job]);
      const exported = await exportTenant(store);
      expect(parse(exported)).to.have.nested.property('databases[0].enabled_clients').deep.equal([app]);
      expect(await apply(file, 'match')).to.deep.equal([]);
      expect(await apply(file, 'create-missing')).to.deep.equal([]);
      expect(await exportTenant(store)).to.equal(exported);
      expect(await apply(parse(exported), 'match')).to.deep.equal([]);
    });

    it('takes the name of an application wherever one is meant', async () => {
      await apply(
        {
          ...file,
          tenant: { account_page: { client_id: 'My App' } },
          connections: [
            {
              name: 'corp',
              strategy: 'samlp',
              options: {
                idpinitiated: { enabled: true, client_id: 'My App', client_protocol: 'oauth2' },
              },
            },
          ],
        },
        'match',
      );
      const exported = parse(await exportTenant(store));
      const app = await idOf('My App');
      expect(exported).to.have.nested.property('tenant.account_page.client_id', app);
      expect(exported).to.have.nested.property('connections[0].options.idpinitiated.client_id', app);
    });

    it('finds the stored one of the same name, whatever its id', async () => {
      await apply(
        { ...file, clients: [{ client_id: 'made-elsewhere', name: 'My App' }, file.clients[1]] },
        'match',
      );
      const job = await idOf('My Job');
      const lines = await apply(file, 'match');
      expect(lines.filter((line) => /^[+-] clients\.[^.]*$/.test(line))).to.deep.equal([]);
      expect(await idOf('My App')).to.equal('made-elsewhere');
      expect(await idOf('My Job')).to.equal(job);
    });

    it('refuses a name that several stored ones have', async () => {
      const spa = await client('spa');
      if (spa === undefined) throw new Error('the tenant has no application');
      for (const id of ['one', 'two'])
        await store.collection('clients').put({
          ...structuredClone(spa as Record<string, unknown>),
          id,
          client_id: id,
          name: 'My App',
        } as typeof spa & { id: string });
      const thrown: unknown = await apply(file, 'match').catch((fault: unknown) => fault);
      expect(String(thrown)).to.contain('2 applications have the name My App: give the client_id');
    });
  });

  it('exports text that looks like a variable so that it is read as that text', async () => {
    const client_secret = 'a-${NOT_A_VARIABLE}-##NEITHER##-\\${NOR_THIS}';
    const html = '<script>`${config.title}: ${text}`</script>';
    const file = {
      clients: [{ client_id: 'x', name: 'X', client_secret }],
      pages: [{ name: 'login', html }],
    };
    await apply(file, 'match');
    const read = parseTenant(await exportTenant(store), { text: 'replaced', NOR_THIS: 'replaced' }).tenant;
    expect(read.clients[0]?.client_secret).to.equal(client_secret);
    expect(read.pages).to.deep.equal([{ name: 'login', html }]);
  });

  it('at start finds existing records by name when the file adds an id later', async () => {
    const file = { resourceServers: [{ name: 'A', identifier: 'a' }] };
    await apply(file, 'match');
    const before = (await store.collection('resourceServers').list()).records;
    await apply({ resourceServers: [{ id: 'later', name: 'A', identifier: 'a' }] }, 'create-missing');
    expect((await store.collection('resourceServers').list()).records).to.deep.equal(before);
  });

  it('on request swaps names between records', async () => {
    const named = (first: string, second: string) => ({
      databases: [
        { id: '1', name: first },
        { id: '2', name: second },
      ],
    });
    await apply(named('a', 'b'), 'match');
    await apply(named('b', 'a'), 'match');
    const { records } = await store.collection('connections').list();
    expect(records.map(({ id, name }) => [id, name])).to.deep.equal([
      ['1', 'b'],
      ['2', 'a'],
    ]);
  });

  it('that renames records is applied as a whole by the next run, wherever the first was killed', async () => {
    const named = (names: readonly string[]) => ({
      databases: names.slice(0, 2).map((name, at) => ({ id: `con_${at}`, name })),
      organizations: names.map((name, at) => ({ id: `org_${at}`, name })),
      resourceServers: names.slice(0, 2).map((name, at) => ({ id: `api_${at}`, name, identifier: name })),
    });
    const [before, after] = [
      ['a', 'b', 'c', 'd'],
      ['b', 'a', 'd', 'e'],
    ];
    const recordsOf = async (name: 'connections' | 'organizations' | 'resourceServers') =>
      (await store.collection(name).list()).records.map((one) => ({ ...one }) as Record<string, unknown>);
    for (let writes = 0, isWhole = false; !isWhole; writes++) {
      await apply(named(before), 'match');
      let left = writes;
      const killed = new Error('killed');
      const failing = <T extends object>(collection: T): T =>
        new Proxy(collection, {
          get:
            (target, method) =>
            (...args: unknown[]) => {
              const call = Reflect.get(target, method) as (...all: unknown[]) => unknown;
              if (['put', 'delete', 'insert', 'update', 'upsert'].includes(String(method)) && left-- <= 0)
                throw killed;
              return call.apply(target, args);
            },
        });
      const dying = { ...store, collection: (name: never) => failing(store.collection(name)) } as Store;
      try {
        await apply(named(after), 'match', dying);
        isWhole = true;
      } catch (thrown) {
        if (thrown !== killed) throw thrown;
      }
      const expected = { connections: 2, organizations: 4, resourceServers: 2 } as const;
      for (const [name, count] of Object.entries(expected))
        expect(await recordsOf(name as never), `${name} after ${writes} writes`).to.have.length.of.at.least(
          count,
        );
      await apply(named(after), 'match');
      for (const [name, count] of Object.entries(expected))
        expect((await recordsOf(name as never)).slice(-count).map((one) => one.name)).to.deep.equal(
          after.slice(0, count),
        );
    }
  });

  it('reports a development user that cannot be created because its username is taken', async () => {
    const user = { username: 'same', password: 'p', connection: 'named' };
    const withUser = (email: string) => ({ databases: [{ name: 'named' }], users: [{ ...user, email }] });
    await apply(withUser('one@example.test'), 'match');
    const applied = apply(withUser('two@example.test'), 'match');
    const fault = await applied.then(
      () => undefined,
      (thrown: Error) => thrown.message,
    );
    expect(fault).to.equal('users: the username of two@example.test is taken in named');
  });

  it('generates a secret for a confidential application without one, and keeps it', async () => {
    const file = { clients: [{ client_id: 'secretless', name: 'S' }] };
    await apply(file, 'create-missing');
    const secret = (await client('secretless'))?.client_secret;
    expect(secret).to.match(/^[\w-]{64}$/);
    await apply(file, 'match');
    expect((await client('secretless'))?.client_secret).to.equal(secret);
  });

  it('gives applications the default grant types and authentication method of their type', async () => {
    const kinds = ['spa', 'native', 'regular_web', 'non_interactive'];
    await apply(
      { clients: kinds.map((app_type) => ({ client_id: app_type, name: app_type, app_type })) },
      'match',
    );
    const found = await Promise.all(kinds.map(client));
    expect(found.map((c) => c?.token_endpoint_auth_method)).to.deep.equal([
      'none',
      'none',
      'client_secret_post',
      'client_secret_post',
    ]);
    expect(found.map((c) => c?.grant_types?.includes('client_credentials'))).to.deep.equal([
      false,
      false,
      true,
      true,
    ]);
    expect(found.map((c) => c?.grant_types?.includes('authorization_code'))).to.deep.equal([
      true,
      true,
      true,
      false,
    ]);
  });

  it('resolves applications by name in connections and grants', async () => {
    await apply(
      {
        clients: [{ client_id: 'id-1', name: 'By name' }],
        databases: [{ name: 'users', enabled_clients: ['By name'] }],
        resourceServers: [{ name: 'A', identifier: 'a' }],
        clientGrants: [{ client_id: 'By name', audience: 'a' }],
      },
      'match',
    );
    expect((await store.collection('connections').findBy('name', 'users'))[0]?.enabled_clients).to.deep.equal(
      ['id-1'],
    );
    expect((await store.collection('clientGrants').list()).records[0]?.client_id).to.equal('id-1');
  });

  it('does not make a confidential application public when its secret was lost', async () => {
    const ask = (client_secret?: string) =>
      token(createAgent(server), {
        grant_type: 'client_credentials',
        client_id: 'm2m',
        client_secret,
        audience: 'https://api.example.test/',
      });
    expect((await ask('m2m-secret')).status).to.equal(200);
    const { client_secret: _secret, ...rest } = structuredClone(await client('m2m')) as Record<
      string,
      unknown
    >;
    await store.collection('clients').put(rest as never);
    for (const secret of ['m2m-secret', undefined, '', 'undefined']) {
      const answer = await ask(secret);
      expect(answer.status, String(secret)).to.be.within(400, 401);
      expect(answer.json().error, String(secret)).to.match(/^invalid_client/);
    }
  });
});
