// The configuration of the deploy tool beside a tenant file: its mappings, and what of the tenant is not managed.
import { expect } from 'chai';
import { stringify } from 'yaml';
import { loadTenantFile, TenantFault } from '../../src/tenant/load.ts';
import { runCommand } from '../support/command.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { order, type TenantFolder, tenantFolder } from '../support/tenant-folder.ts';

describe("the deploy tool's configuration", () => {
  let folder: TenantFolder;
  beforeEach(async () => {
    folder = await tenantFolder();
  });
  afterEach(() => folder.remove());

  const environment = async (config: unknown, more: Record<string, string> = {}) => ({
    TENANT_CONFIG: await folder.write('config.json', config),
    ...more,
  });
  const faultsOf = async (path: string, env: Record<string, string>) => {
    const thrown: unknown = await loadTenantFile(path, env).catch((fault: unknown) => fault);
    expect(thrown).to.be.instanceOf(TenantFault);
    return (thrown as TenantFault).faults.map((fault) => fault.replaceAll(`${folder.path}/`, ''));
  };

  it('has values of variables, of which the environment has the first word', async () => {
    const path = await folder.write(
      'tenant.yaml',
      `
tenant: { friendly_name: "##NAME## ##with-hyphen##", session_lifetime: @@hours@@ }
clients: [{ name: One, callbacks: @@URLS@@, client_metadata: { number: '@@NUMBER@@' } }]
pages: [{ name: login, html: "<p>@@config@@ ##NAME##</p>" }]
`,
    );
    const mappings = {
      NAME: 'Config',
      'with-hyphen': 'of ##NAME##',
      hours: 12,
      URLS: ['https://a.test/cb'],
      NUMBER: '5',
    };
    const env = await environment({ AUTH0_KEYWORD_REPLACE_MAPPINGS: mappings, AUTH0_CLIENT_SECRET: 'x' });
    const { tenant } = await loadTenantFile(path, env);
    // A value is not searched for variables in turn.
    expect(tenant.tenant).to.include({ friendly_name: 'Config of ##NAME##', session_lifetime: 12 });
    expect(tenant.clients[0]).to.deep.include({
      callbacks: ['https://a.test/cb'],
      client_metadata: { number: '5' },
    });
    expect(tenant.pages?.[0]?.html).to.equal('<p>@@config@@ Config</p>');
    const { tenant: other } = await loadTenantFile(path, { ...env, NAME: 'Environment' });
    expect(other.tenant.friendly_name).to.contain('Environment');
  });

  it('says which sections, items and applications are not read; references to them are none', async () => {
    const path = await folder.write('tenant.yaml', {
      clients: [
        { name: 'Mine', client_id: 'mine' },
        { name: 'Console', client_id: 'console' },
        { name: 'Theirs', client_id: 'theirs', is_first_party: false },
      ],
      databases: [{ name: 'users', enabled_clients: ['Mine', 'Console'] }, { name: 'legacy' }],
      connections: [
        { name: 'google', strategy: 'google-oauth2' },
        { name: 'old', strategy: 'telegraph' },
      ],
      resourceServers: [
        { name: 'API', identifier: 'https://api.test' },
        { name: 'Other', identifier: 'https://other.test' },
      ],
      clientGrants: ['Mine', 'console', 'theirs'].map((client_id) => ({
        client_id,
        audience: 'https://other.test',
      })),
      rules: [
        { name: 'one', script: '//' },
        { name: 'two', script: './missing.js' },
      ],
      roles: [{ name: '##NOT_SET##' }],
      organizations: [{ name: 'org', connections: [{ name: 'legacy' }] }],
    });
    const { tenant, report } = await loadTenantFile(
      path,
      await environment({
        AUTH0_EXCLUDED: ['roles'],
        AUTH0_EXCLUDED_CLIENTS: ['Console'],
        AUTH0_EXCLUDE_THIRD_PARTY_CLIENTS: true,
        AUTH0_EXCLUDED_DATABASES: ['legacy'],
        AUTH0_INCLUDED_CONNECTIONS: ['google'],
        AUTH0_EXCLUDED_RESOURCE_SERVERS: ['Other'],
        AUTH0_EXCLUDED_RULES: ['two'],
      }),
    );
    const names = (items: readonly { name: string }[] = []) => items.map(({ name }) => name);
    expect(names(tenant.clients)).to.deep.equal(['Mine']);
    expect(names(tenant.databases)).to.deep.equal(['users']);
    expect(names(tenant.connections)).to.deep.equal(['google']);
    expect(names(tenant.resourceServers)).to.deep.equal(['API']);
    expect(tenant.clientGrants.map(({ client_id }) => client_id)).to.deep.equal(['Mine']);
    expect(names(tenant.rules)).to.deep.equal(['one']);
    expect(tenant).to.not.have.property('roles');
    expect(report.join()).to.not.contain('unmanaged').and.not.contain('grants nothing');
  });

  it('takes each name from the environment, too, as JSON', async () => {
    const path = await folder.write('tenant.yaml', {
      clients: [{ name: 'One' }, { name: 'Two' }],
      roles: [{ name: 'r' }],
      actions: [],
    });
    const { tenant } = await loadTenantFile(path, {
      AUTH0_INCLUDED_ONLY: '["clients"]',
      AUTH0_EXCLUDED_CLIENTS: '["Two"]',
    });
    expect(tenant.clients.map(({ name }) => name)).to.deep.equal(['One']);
    expect(tenant).to.not.have.any.keys('roles', 'actions');
    expect(await faultsOf(path, { AUTH0_EXCLUDED: 'roles' })).to.deep.equal([
      'AUTH0_EXCLUDED: Invalid input: expected array, received string',
    ]);
  });

  it('names the folder of connections', async () => {
    await folder.write('tenant.json', {});
    await folder.write('connections/a.json', { name: 'a', strategy: 'google-oauth2' });
    await folder.write('other/b.json', { name: 'b', strategy: 'google-oauth2' });
    const env = await environment({ AUTH0_CONNECTIONS_DIRECTORY: 'other' });
    const { tenant } = await loadTenantFile(folder.path, env);
    expect(tenant.connections.map(({ name }) => name)).to.deep.equal(['b']);
  });

  it('may have a text in place of the mappings, as the tool takes it: no variable has a value by that', async () => {
    const path = await folder.write('tenant.yaml', 'tenant: { friendly_name: Acme }');
    const env = await environment({ AUTH0_KEYWORD_REPLACE_MAPPINGS: './config/replace.json' });
    const { report } = await loadTenantFile(path, env);
    expect(report.join()).to.match(/^AUTH0_KEYWORD_REPLACE_MAPPINGS: a text has no mappings.*config\.json\)/);
    await folder.write('tenant.yaml', 'tenant: { friendly_name: "##NAME##" }');
    expect((await faultsOf(path, env)).join()).to.contain('NAME is not set');
    // In the environment it is the operator's own mistake.
    expect((await faultsOf(path, { AUTH0_KEYWORD_REPLACE_MAPPINGS: '{ "NAME": ' })).join()).to.contain(
      'AUTH0_KEYWORD_REPLACE_MAPPINGS',
    );
  });

  it('that cannot be read or contradicts itself is a fault that quotes no secret', async () => {
    const path = await folder.write('tenant.yaml', 'clients: []');
    const text = async (config: unknown) => (await faultsOf(path, await environment(config))).join();
    expect(await faultsOf(path, { TENANT_CONFIG: `${folder.path}/none.json` })).to.deep.equal([
      'TENANT_CONFIG: none.json cannot be read (there is no such file)',
    ]);
    const broken = await text('{ "AUTH0_CLIENT_SECRET": "hidden", }');
    expect(broken).to.contain('it is no JSON').and.not.contain('hidden');
    expect(await text([1])).to.contain('it is no JSON object');
    expect(await text({ AUTH0_EXCLUDED: ['a'], AUTH0_INCLUDED_ONLY: ['b'] })).to.contain(
      'AUTH0_EXCLUDED: cannot be given together with AUTH0_INCLUDED_ONLY (config.json)',
    );
    expect(await text({ AUTH0_INCLUDED_ONLY: [] })).to.contain('must name at least one section');
    expect(await text({ EXCLUDED_PROPS: { clients: ['a'] }, INCLUDED_PROPS: { clients: ['a'] } })).to.contain(
      'EXCLUDED_PROPS.clients: a is also in INCLUDED_PROPS',
    );
  });

  it('is an option of check, plan and apply', async () => {
    await folder.write('tenant.yaml', 'tenant: { friendly_name: "##NAME##" }');
    await folder.write('config.json', { AUTH0_KEYWORD_REPLACE_MAPPINGS: { NAME: 'One' } });
    const env = { TENANT_FILE: 'tenant.yaml', NODE_ENV: 'test' };
    const run = (...args: string[]) => runCommand({ cwd: folder.path, env, args });
    expect((await run('check')).stderr).to.contain('NAME is not set');
    expect((await run('check', '--config', 'config.json')).code).to.equal(0);
    const applied = await run('apply', '--config', 'config.json');
    expect(applied.stdout, applied.stderr).to.match(/applied tenant\.yaml/);
    const planned = await run('plan', '--config', 'config.json');
    expect(planned).to.deep.include({ code: 0 });
    expect(planned.stdout).to.contain('no changes');
  });

  describe('when the file is applied', () => {
    let server: TestServer;
    const STORED = {
      clients: [
        { name: 'Mine', client_id: 'mine', client_metadata: { team: 'a' }, description: 'stored' },
        { name: 'Console', client_id: 'console' },
        { name: 'Theirs', client_id: 'theirs', is_first_party: false },
      ],
      databases: [{ name: 'users', enabled_clients: ['console'] }],
      connections: [
        {
          name: 'google',
          strategy: 'google-oauth2',
          options: { client_id: 'g', client_secret: 'stored-secret' },
        },
        { name: 'own', strategy: 'google-oauth2', options: { client_id: 'o' }, enabled_clients: ['mine'] },
      ],
      resourceServers: [{ name: 'API', identifier: 'https://api.test' }],
      clientGrants: ['console', 'theirs', 'mine'].map((client_id) => ({
        client_id,
        audience: 'https://api.test',
      })),
      roles: [{ name: 'reader' }],
      rules: [
        { name: 'one', script: '//1' },
        { name: 'two', script: '//2' },
      ],
      attackProtection: { bruteForceProtection: { max_attempts: 7 } },
    };
    before(async () => {
      server = await startServer({ tenant: STORED });
    });
    after(() => server.stop());

    const commands = async (document: object, config: object, more: Record<string, string> = {}) => {
      const path = await folder.write('tenant.yaml', stringify(document));
      const env = await environment(config, more);
      const lines = await order(server, 'plan', { path, env });
      expect(await order(server, 'apply', { path, env })).to.deep.equal(lines);
      expect(await order(server, 'plan', { path, env })).to.deep.equal([]);
      return lines;
    };
    const RESET = { AUTH0_ALLOW_DELETE: true };
    beforeEach(async () => {
      await commands(STORED, RESET);
    });

    it('what it excludes stays as it is, and sections that the file lacks, too', async () => {
      const lines = await commands(
        {
          clients: [{ name: 'Mine', client_id: 'mine', description: 'of the file' }],
          databases: [{ name: 'users', enabled_clients: ['mine', 'Console'] }],
          clientGrants: [],
        },
        { AUTH0_EXCLUDED_CLIENTS: ['Console'], AUTH0_EXCLUDE_THIRD_PARTY_CLIENTS: true, ...RESET },
      );
      expect(lines.filter((line) => !line.includes('clients.mine.'))).to.deep.equal([
        '+ connections.users.enabled_clients[1]: "mine"',
        '- clientGrants.mine https://api.test',
      ]);
      expect(JSON.stringify(await server.store.collection('clients').list({})))
        .to.contain('Console')
        .and.contain('Theirs')
        .and.contain('of the file');
      expect((await server.store.collection('roles').list({})).records).to.have.length(1);
    });

    it('an excluded application is enabled for a connection exactly if it is already', async () => {
      const enabled = async (name: string) => {
        const [found] = await server.store.collection('connections').findBy('name', name);
        return found?.enabled_clients;
      };
      const { databases, connections } = STORED;
      const others = connections.filter(({ name }) => name !== 'own');
      await commands(
        {
          clients: [{ name: 'Mine', client_id: 'mine' }],
          databases: databases.map((one) => ({ ...one, enabled_clients: ['mine'] })),
          connections: [...others, { ...connections[1], enabled_clients: ['Console', 'mine'] }],
        },
        { AUTH0_EXCLUDED_CLIENTS: ['Console'] },
      );
      expect(await enabled('users')).to.have.members(['mine', 'console']);
      expect(await enabled('own')).to.deep.equal(['mine']);
    });

    it('nothing is deleted unless it says so', async () => {
      const document = { clients: [{ name: 'New', client_id: 'new' }], roles: [], rules: [] };
      const kept = await commands(document, { AUTH0_ALLOW_DELETE: false });
      expect(kept).to.deep.equal(['+ clients.new']);
      const lines = await commands(document, { AUTH0_EXCLUDED_RULES: ['two'], AUTH0_ALLOW_DELETE: true });
      expect(lines).to.include.members(['- clients.mine', '- roles.reader', '- rules.one']);
      expect(lines.join()).to.not.contain('rules.two').and.not.contain('connections');
    });

    it('only the sections that it includes change, and names are those of the store', async () => {
      const lines = await commands(
        {
          ...STORED,
          clients: [],
          tenant: { friendly_name: 'other' },
          databases: [{ name: 'users', enabled_clients: ['Mine'] }],
        },
        { AUTH0_INCLUDED_ONLY: ['databases'], ...RESET },
      );
      expect(lines.length).to.be.above(0);
      expect(lines.every((line) => line.slice(2).startsWith('connections.users'))).to.equal(true);
      const [users] = await server.store.collection('connections').findBy('name', 'users');
      expect(users?.enabled_clients).to.deep.equal(['mine']);
      const path = await folder.write('tenant.yaml', {
        databases: [{ name: 'users', enabled_clients: ['Nobody'] }],
      });
      const env = await environment({ AUTH0_INCLUDED_ONLY: ['databases'] });
      const thrown = await order(server, 'plan', { path, env }).catch((error: unknown) => String(error));
      expect(thrown).to.contain('Nobody is no application of this tenant');
    });

    it('excluded members stay as they are stored, where they are', async () => {
      const lines = await commands(
        {
          clients: [
            { name: 'Mine', client_id: 'mine', description: 'of the file' },
            { name: 'New', client_id: 'new', description: 'of the file' },
          ],
          connections: [
            {
              name: 'google',
              strategy: 'google-oauth2',
              options: { client_id: 'new', client_secret: 'of the file' },
            },
          ],
          attackProtection: {},
        },
        {
          EXCLUDED_PROPS: {
            clients: ['client_metadata', 'description'],
            connections: ['options.client_secret'],
            attackProtection: ['bruteForceProtection.max_attempts', '__proto__.polluted'],
          },
        },
      );
      const client = await server.store.collection('clients').get('mine');
      expect(client).to.deep.include({ client_metadata: { team: 'a' }, description: 'stored' });
      const added = await server.store.collection('clients').get('new');
      expect(added?.description).to.equal('of the file');
      const [google] = await server.store.collection('connections').findBy('name', 'google');
      expect(google?.options).to.deep.include({ client_id: 'new', client_secret: 'stored-secret' });
      const settings = await server.store.collection('tenant').get('tenant');
      expect(settings?.attackProtection.bruteForceProtection?.max_attempts).to.equal(7);
      expect(lines.join()).to.not.contain('stored-secret');
      expect({}).to.not.have.property('polluted');
    });
  });
});
