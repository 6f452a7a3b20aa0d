// Export and apply are inverse: the tenant is identical byte for byte, also after changes by the Management API.
import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { parse } from 'yaml';
import { managementApi } from '../../src/features/management/api.ts';
import { createLog } from '../../src/runtime/log.ts';
import type { OrderDependencies } from '../../src/server/administration/order.ts';
import { runOrder } from '../../src/server/administration/orders.ts';
import { loadTenantFile, parseTenant, readTenant, type TenantFault } from '../../src/tenant/load.ts';
import { EXAMPLE } from '../management/example.ts';
import { createAgent } from '../support/agent.ts';
import {
  API,
  authorize,
  logIn,
  PASSWORD_REQUEST,
  responseOf,
  tenant,
  token,
  webRequest,
} from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { itInFiles } from '../support/store.ts';
import { EVERYTHING } from './everything.ts';

describe('a tenant that is exported and applied', () => {
  let server: TestServer;
  afterEach(() => server.stop());

  const deps = (): OrderDependencies => ({
    settings: server.settings,
    store: server.store,
    users: server.users,
    administrators: server.administrators,
    clock: Date.now,
    random: randomBytes,
    log: createLog('silent'),
    events: server.tenant.events,
    endBlocked: async () => undefined,
    resumeRemovals: server.tenant.resumeRemovals,
    checkConnections: server.tenant.checkConnections,
  });
  const exported = async () => String(await runOrder(deps(), { command: 'export' }));
  const order = async (command: 'apply' | 'plan', document: object) =>
    (await runOrder(deps(), { command, tenant: readTenant(document).tenant })) as string[];
  const reapplied = async (text: string) => {
    const { tenant, warnings } = parseTenant(text, {});
    expect(warnings.filter((line) => line.includes('is not known here'))).to.deep.equal([]);
    return (await runOrder(deps(), { command: 'apply', tenant })) as string[];
  };

  for (const [name, given] of Object.entries({
    'the example': parse(EXAMPLE),
    'every section': EVERYTHING,
  })) {
    it(`is identical: ${name}`, async () => {
      server = await startServer({ tenant: given });
      const first = await exported();
      expect(await reapplied(first)).to.deep.equal([]);
      expect(await exported()).to.equal(first);
      expect(await order('plan', given)).to.deep.equal([]);
    });
  }

  it('is the same in another order of what is known by its name, and a change names it', async () => {
    server = await startServer({ tenant: EVERYTHING });
    const [first, ...others] = (parse(EXAMPLE) as { guardianFactors: { name: string }[] }).guardianFactors;
    const pages = [{ name: 'password_reset', html: '<p>@@config@@</p>' }, ...EVERYTHING.pages];
    await order('apply', { ...EVERYTHING, pages });
    const turned = {
      ...EVERYTHING,
      guardianFactors: [...others, first],
      pages: [...pages].reverse(),
    };
    expect(await order('plan', turned)).to.deep.equal([]);
    const changed = { ...turned, guardianFactors: [...others, { ...first, enabled: false }] };
    expect(await order('plan', changed)).to.deep.equal([
      `~ guardianFactors.${first?.name}.enabled: true → false`,
    ]);
  });

  it('is identical in an empty store', async () => {
    server = await startServer({ tenant: EVERYTHING });
    const { issuer } = server;
    const first = await exported();
    await server.stop();
    server = await startServer({ tenant: { ...parseTenant(first, {}).tenant } });
    // Its URL is another: the system chooses the port.
    expect((await exported()).replaceAll(server.issuer, issuer)).to.equal(first);
  });

  it('keeps texts that look like files, so that nobody who may write a message has a file read into it', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'tenant-texts-'));
    try {
      writeFileSync(join(folder, '.env'), 'SECRET=of the machine');
      writeFileSync(join(folder, 'page.html'), '<p>of the machine</p>');
      const texts = ['./.env', '\\./.env', '\\\\page.html', ' ./page.html', 'page.html', '\\##A##/page.html'];
      const partials = Object.fromEntries(texts.map((text, n) => [`login-${n}`, { form: text }]));
      server = await startServer({
        tenant: {
          ...EVERYTHING,
          emailTemplates: EVERYTHING.emailTemplates.map((one) => ({ ...one, body: './.env' })),
          pages: EVERYTHING.pages.map((one) => ({ ...one, html: '.\\page.html' })),
          prompts: { ...EVERYTHING.prompts, partials: { login: partials } },
        },
      });
      const first = await exported();
      const file = join(folder, 'tenant.yaml');
      writeFileSync(file, first);
      const { tenant: read } = await loadTenantFile(file, {});
      expect(JSON.stringify(read)).not.to.contain('of the machine');
      expect(await runOrder(deps(), { command: 'apply', tenant: read })).to.deep.equal([]);
      expect(await reapplied(first)).to.deep.equal([]);
      expect(await exported()).to.equal(first);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it('keeps a character in names that guards values of variables', async () => {
    const names = ['guard ab', 'guard a\uFDD0b', '##A##', '#\uFDD0#A##', '#\uFDD0\uFDD0#A##', '\uFDD0'];
    const roles = names.map((name) => ({ name, description: name }));
    server = await startServer({ tenant: { ...EVERYTHING, roles: [...EVERYTHING.roles, ...roles] } });
    const first = await exported();
    expect(await reapplied(first)).to.deep.equal([]);
    const read = await server.store.collection('roles').list({ limit: 50 });
    expect(read.records.map(({ name }) => name)).to.include.members(names);
  });

  it('keeps changes of the Management API', async () => {
    server = await startServer({ tenant: EVERYTHING });
    const { client_id, client_secret } = await runOrder(deps(), { command: 'admin', name: 'A' });
    const agent = createAgent(server);
    const { access_token } = (
      await agent.request('/oauth/token', {
        json: {
          grant_type: 'client_credentials',
          client_id,
          client_secret,
          audience: managementApi(server.issuer).identifier,
        },
      })
    ).json();
    const call = async (method: string, path: string, json: object) => {
      const answer = await agent.request(`/api/v2${path}`, {
        method,
        json,
        headers: { authorization: `Bearer ${access_token}` },
      });
      expect(answer.status, `${path} ${answer.text}`).to.be.within(200, 299);
      return answer.text === '' ? {} : answer.json();
    };
    const connection = await call('POST', '/connections', { name: 'more-people', strategy: 'auth0' });
    const organization = await call('POST', '/organizations', { name: 'beta', metadata: { z: '1', a: '2' } });
    await call('POST', `/organizations/${organization.id}/connections`, { connection_id: connection.id });
    const role = await call('POST', '/roles', { name: 'Made' });
    await call('POST', `/roles/${role.id}/permissions`, {
      permissions: [
        { permission_name: 'read:things', resource_server_identifier: 'https://api.example.test/' },
      ],
    });
    await call('POST', '/clients', { name: 'Made too', app_type: 'spa' });
    const api = await call('POST', '/resource-servers', {
      identifier: 'https://made.example.test/',
      scopes: [{ value: 'x' }],
    });
    await call('PATCH', `/resource-servers/${api.id}`, { token_lifetime: 60 });
    await call('PATCH', '/prompts', { identifier_first: false });
    await call('PUT', '/prompts/signup/custom-text/en', { signup: { title: 'Join' } });
    const action = await call('POST', '/actions/actions', {
      name: 'Second',
      code: '1',
      supported_triggers: [{ id: 'post-login', version: 'v3' }],
      secrets: [{ name: 'S', value: 'hidden-from-calls' }],
    });
    await call('POST', `/actions/actions/${action.id}/deploy`, {});
    await call('PATCH', '/actions/triggers/post-login/bindings', {
      bindings: [{ ref: { type: 'action_id', value: action.id }, display_name: 'Second' }],
    });
    await call('POST', '/log-streams', {
      name: 'Two',
      type: 'http',
      sink: { httpEndpoint: 'https://x.example.test/' },
    });
    await call('PUT', '/guardian/factors/otp', { enabled: true });
    await call('PATCH', '/branding', { colors: { primary: '#445566' } });
    await call('PATCH', '/tenants/settings', { friendly_name: 'Renamed' });
    const text = await exported();
    expect(text).to.contain('Made too').and.contain('hidden-from-calls').and.contain('name: more-people');
    expect(await reapplied(text)).to.deep.equal([]);
    expect(await exported()).to.equal(text);
  });

  it('plans each member without secrets, and applies the plan completely', async () => {
    server = await startServer({ tenant: EVERYTHING });
    const changed = structuredClone(EVERYTHING) as unknown as {
      clients: Record<string, unknown>[];
      roles: { name: string; description?: string }[];
      actions: { secrets: { value: string }[] }[];
      tenant: Record<string, unknown>;
      customDomains: object[];
    };
    Object.assign(changed.clients.find((one) => one.client_id === 'example-web') ?? {}, {
      callbacks: ['https://new.example.test/cb'],
      client_secret: 'a-secret-nobody-may-read',
      description: 'new',
    });
    changed.clients.push({ client_id: 'added', name: 'Added', app_type: 'spa' });
    changed.roles = [{ name: 'Reader', description: 'Reads' }];
    changed.customDomains = [];
    const [action] = changed.actions;
    if (action?.secrets[0] !== undefined) action.secrets[0].value = 'another-value-nobody-reads';
    changed.tenant.friendly_name = 'Anew';
    const plan = await order('plan', changed);
    expect(plan).to.include.members([
      '~ tenant.friendly_name: "Gatehouse" → "Anew"',
      '+ clients.added',
      '+ clients.example-web.description: "new"',
      '~ clients.example-web.client_secret: "(hidden)" → "(hidden)"',
      '- roles.Editor',
      '+ roles.Reader.description: "Reads"',
      '- customDomains.login.example.test',
      '~ actions.Greet.body.secrets[0].value: "(hidden)" → "(hidden)"',
    ]);
    expect(plan.some((line) => line.startsWith('~ clients.example-web.callbacks[0]: '))).to.equal(true);
    expect(plan.join('\n')).not.to.match(/nobody/);
    // A plan changes nothing.
    expect(await order('plan', changed)).to.deep.equal(plan);
    expect(await order('apply', changed)).to.deep.equal(plan);
    expect(await order('apply', changed)).to.deep.equal([]);
    expect(await order('plan', changed)).to.deep.equal([]);
  });

  it('leaves sections unchanged that the file does not have, and ids that it does not give', async () => {
    server = await startServer({ tenant: EVERYTHING });
    const {
      roles: _r,
      actions: _a,
      rules: _ru,
      rulesConfigs: _rc,
      triggers: _t,
      themes: _h,
      prompts: _p,
      guardianSettings: _g,
      guardianFactorTemplates: _m,
      logStreams: _l,
      customDomains: _c,
      ...rest
    } = EVERYTHING;
    expect(await order('plan', rest)).to.deep.equal([]);
    await server.store
      .collection('roles')
      .delete((await server.store.collection('roles').findBy('name', 'Reader'))[0]?.id ?? '');
    await server.store.collection('roles').insert({ id: 'rol_ofacall', name: 'Reader', permissions: [] });
    expect(await order('apply', EVERYTHING)).to.deep.equal([]);
    expect(await server.store.collection('roles').get('rol_ofacall')).to.have.property('name', 'Reader');
  });

  it('removes a role from its users with the role, and the memberships with an organization', async () => {
    server = await startServer({ tenant: EVERYTHING });
    const { store } = server;
    const [role] = await store.collection('roles').findBy('name', 'Editor');
    const [organization] = await store.collection('organizations').findBy('name', 'acme');
    const [user] = (await store.collection('users').list()).records;
    await store.collection('users').update(user?.id ?? '', (one) => ({ ...one, roles: [role?.id ?? ''] }));
    await store.collection('memberships').put({
      id: `${organization?.id}\n${user?.id}`,
      organization_id: organization?.id ?? '',
      user_id: user?.id ?? '',
      roles: [role?.id ?? ''],
    });
    await order('apply', { ...EVERYTHING, roles: [], organizations: [] });
    await order('apply', EVERYTHING);
    expect((await store.collection('users').get(user?.id ?? ''))?.roles).to.deep.equal([]);
    expect(await store.collection('memberships').count()).to.equal(0);
  });

  it('rejects connections and actions that the file does not have', () => {
    const faults = () => {
      try {
        readTenant({
          organizations: [{ name: 'a', connections: [{ name: 'gone' }] }],
          actions: [{ name: 'Other', code: '', deployed: true, supported_triggers: [{ id: 'post-login' }] }],
          triggers: { t: [{ action_name: 'Other' }] },
          roles: [{ name: 'one' }, { name: 'one' }],
          rules: [
            { name: 'one', script: 'x' },
            { name: 'One', script: 'y' },
          ],
          rulesConfigs: [
            { key: 'K', value: 'x' },
            { key: 'K', value: 'y' },
          ],
        });
      } catch (thrown) {
        return (thrown as TenantFault).faults;
      }
      return [];
    };
    expect(faults().join('\n'))
      .to.contain('organizations[0].connections: gone is no connection here')
      .and.contain('triggers.t[0].action_name: the action Other is of another trigger')
      .and.contain('roles[1]')
      .and.contain('rules[1]')
      .and.contain('rulesConfigs[1]');
  });

  itInFiles('encrypts the secrets of actions and log streams on disk', async () => {
    server = await startServer({ tenant: EVERYTHING });
    const file = readFileSync(join(server.dataDir, 'store/documents.json'), 'utf8');
    expect(file).to.contain('Greet').and.not.contain('nobody-reads').and.not.contain('of-logs');
  });
});

describe('a file that is applied while the server runs', () => {
  let server: TestServer;
  before(async () => {
    server = await startServer({ tenant });
  });
  after(() => server.stop());

  const applied = (document: object) =>
    runOrder(
      {
        settings: server.settings,
        store: server.store,
        users: server.users,
        administrators: server.administrators,
        clock: Date.now,
        random: randomBytes,
        log: createLog('silent'),
        events: server.tenant.events,
        endBlocked: async () => undefined,
        resumeRemovals: server.tenant.resumeRemovals,
        checkConnections: server.tenant.checkConnections,
      },
      { command: 'apply', tenant: readTenant(document).tenant },
    );

  it('takes effect with the next request, and keeps sessions', async () => {
    const browser = createAgent(server);
    await logIn(browser, server, webRequest());
    const silently = async (over = {}) =>
      responseOf(await authorize(browser, webRequest({ prompt: 'none', ...over })));
    expect(await silently()).to.have.property('code');
    const machine = { client_id: 'another', client_secret: 'the-secret-of-another' };
    const request = () =>
      token(createAgent(server), { grant_type: 'client_credentials', ...machine, audience: API });
    expect((await request()).status).to.equal(401);
    const added = {
      ...tenant,
      clients: [...tenant.clients, { ...machine, name: 'Another', app_type: 'non_interactive' }],
      clientGrants: [...tenant.clientGrants, { client_id: 'another', audience: API, scope: ['read:things'] }],
    };
    await applied(added);
    expect((await request()).status).to.equal(200);
    expect(await silently()).to.have.property('code');
    // The database is no longer a connection of the application, so nobody can log in with it.
    const password = () =>
      token(createAgent(server), {
        ...PASSWORD_REQUEST,
        scope: 'openid',
      });
    expect((await password()).status).to.equal(200);
    await applied({
      ...added,
      databases: tenant.databases.map((one) => ({ ...one, enabled_clients: [] })),
    });
    expect((await password()).status).to.be.within(400, 403);
    await applied(tenant);
    expect((await request()).status).to.equal(401);
    expect((await password()).status).to.equal(200);
    expect(await silently()).to.have.property('code');
  });
});
