// /console/agents: third-party applications, above all those that registered themselves, what they can reach, and the
// switch that lets them in.
import { expect } from 'chai';
import { clientSchema } from '../../src/records/clients/clients.ts';
import type { RegistrationRecord } from '../../src/records/clients/registrations.ts';
import { STRANGERS } from '../../src/records/clients/third-parties.ts';
import { createAgent } from '../support/agent.ts';
import { type ConsoleAgent, openConsole, startConsole } from '../support/console.ts';
import { authorize, tenant } from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';
import { UNLIMITED } from '../support/unlimited.ts';

const PATH = '/console/agents';
const MCP = 'https://mcp.example.test/mcp';
const SINCE = Date.parse('2026-11-01T00:00:00Z');

const own = {
  ...tenant,
  ...UNLIMITED,
  databases: tenant.databases.map((one) => ({ ...one, is_domain_connection: one.name === 'users' })),
  clients: [
    ...tenant.clients,
    { client_id: 'partner', name: 'Partner', is_first_party: false, callbacks: ['https://partner.test/cb'] },
  ],
  resourceServers: [
    ...tenant.resourceServers,
    { name: 'Tools', identifier: MCP, scopes: [{ value: 'tools:read' }, { value: 'tools:write' }] },
  ],
};

describe('the agents in the console', () => {
  let server: TestServer;
  let owner: ConsoleAgent;
  let viewer: ConsoleAgent;
  before(async () => {
    server = await startConsole({ tenant: own });
    owner = await openConsole(server);
    viewer = await openConsole(server, 'viewer');
  });
  after(() => server.stop());

  const idOf = (n: number) => `tpc_${String(n).padStart(32, '0')}`;
  const agentPath = (id: string) => `${PATH}/applications/${id}`;
  /** Adds an application as a registration makes it. */
  const add = async (
    n: number,
    { client, ...record }: Partial<Omit<RegistrationRecord, 'client'>> & { client?: object } = {},
  ): Promise<string> => {
    const id = idOf(n);
    const made = {
      client_id: id,
      name: `Agent ${n}`,
      callbacks: [`https://agent-${n}.test/cb`],
      grant_types: ['authorization_code'],
      token_endpoint_auth_method: 'none',
      app_type: 'spa',
      ...STRANGERS,
      third_party_security_mode: 'strict',
      external_metadata_type: 'dcr',
      external_metadata_created_by: 'client',
      ...client,
    };
    await server.store.collection('registrations').put({
      id,
      client: { ...clientSchema.parse(made), id },
      metadata: {},
      token_hash: 'none',
      created_at: new Date(SINCE + n * 1000).toISOString(),
      expiresAt: Math.floor(Date.now() / 1000) + 1000,
      ...record,
    });
    return id;
  };
  const consent = (userId: string, clientId: string, scopes: Record<string, string[]> = { '': ['openid'] }) =>
    server.store
      .collection('consents')
      .put({ id: `${userId}\n${clientId}`, user_id: userId, client_id: clientId, scopes });
  const settings = async () => (await server.store.collection('tenant').list()).records[0];
  const register = () =>
    createAgent(server).request('/oidc/register', {
      json: {
        client_name: 'New one',
        redirect_uris: ['https://new.test/cb'],
        token_endpoint_auth_method: 'none',
      },
    });
  const startOf = async (id: string) => {
    const agent = createAgent(server);
    return authorize(agent, {
      client_id: id,
      response_type: 'code',
      scope: 'openid',
      redirect_uri: 'https://agent-700.test/cb',
      code_challenge: 'x'.repeat(43),
      code_challenge_method: 'S256',
    });
  };

  describe('the switch', () => {
    it('says what it opens, turns registration on with the second click, and off with one', async () => {
      expect((await register()).status).to.equal(403);
      const list = await owner.get(PATH);
      expect(list.text).to.contain(`href="${PATH}/registration"`);
      const page = await owner.get(`${PATH}/registration`);
      for (const said of ['ask your users for access', 'No API is open', '<bdi>users</bdi>'])
        expect(page.text).to.contain(said);
      const on = await owner.post(`${PATH}/registration`, { token: '', mode: 'strict', days: '7' });
      expect(on.status).to.equal(303);
      expect(on.location).to.match(/\/console\/agents\?said=console.agents.said.on$/);
      expect((await register()).status).to.equal(201);
      expect((await settings())?.tenant?.dynamic_client_registration).to.deep.equal({
        requires_token: false,
        unused_days: 7,
      });
      const off = await owner.post(`${PATH}/registration/off`);
      expect(off.status).to.equal(303);
      expect((await register()).status).to.equal(403);
      expect((await owner.get(PATH)).text).to.contain('New one');
    });

    it('keeps other flags of the tenant, and can ask for a token', async () => {
      const before = (await settings())?.tenant?.flags;
      await owner.post(`${PATH}/registration`, { token: 'on', mode: 'permissive', days: '30' });
      expect((await register()).status).to.equal(401);
      const { tenant: now } = (await settings()) ?? {};
      expect(now?.dynamic_client_registration_security_mode).to.equal('permissive');
      expect(now?.flags).to.deep.equal({ ...before, enable_dynamic_client_registration: true });
      await owner.post(`${PATH}/registration`, { token: '', mode: 'strict', days: '30' });
      await owner.post(`${PATH}/registration/off`);
    });

    it('refuses a wrong number of days beside its field, and turns nothing on', async () => {
      for (const days of ['0', '366', '', '1.5', 'many']) {
        const answer = await owner.post(`${PATH}/registration`, { mode: 'strict', token: '', days });
        expect(answer.status, days).to.equal(400);
        expect(answer.text).to.contain('id="days-fault"');
      }
      expect((await register()).status).to.equal(403);
    });

    it('reads documents of applications, of all hosts or those that are named, and then none', async () => {
      const save = (allowed: string, denied = '') => owner.post(`${PATH}/documents`, { allowed, denied });
      const now = async () => {
        const { tenant: all } = (await settings()) ?? {};
        return [all?.client_id_metadata_document_supported, all?.client_id_metadata_documents];
      };
      expect((await owner.get(`${PATH}/documents`)).text).to.contain('Whoever publishes a document');
      expect((await save('Agents.test\r\n*.tools.test\r\n')).status).to.equal(303);
      expect(await now()).to.deep.equal([true, { allowed_hosts: ['agents.test', '*.tools.test'] }]);
      expect((await owner.get(`${PATH}/documents`)).text).to.contain('agents.test\n*.tools.test</textarea>');
      const refused = await save('https://agents.test/');
      expect([refused.status, refused.text.includes('https://agents.test/</textarea>')]).to.deep.equal([
        400,
        true,
      ]);
      await save('', 'evil.test');
      expect(await now()).to.deep.equal([true, { denied_hosts: ['evil.test'] }]);
      await owner.post(`${PATH}/documents/off`);
      expect((await now())[0]).to.equal(undefined);
    });

    it('is not for viewers, support, or a form without the token of the page', async () => {
      for (const path of ['registration', 'documents'].flatMap((one) => [
        `${PATH}/${one}`,
        `${PATH}/${one}/off`,
      ])) {
        expect((await viewer.post(path, { days: '7' })).status, path).to.equal(403);
        const without = await owner.agent.request(path, { form: { days: '7', mode: 'strict', token: '' } });
        expect(without.status, path).to.equal(403);
      }
      expect((await viewer.get(PATH)).text).not.to.contain(`${PATH}/registration`);
      const support = await openConsole(server, 'support');
      expect((await support.get(PATH)).status).to.equal(403);
      expect((await support.get('/console')).text).not.to.contain(`href="${PATH}"`);
    });
  });

  describe('the applications', () => {
    it('are paged by cursor, newest first, each once, though others register meanwhile at one time', async () => {
      for (let n = 100; n < 160; n += 1) await add(n, { created_at: new Date(SINCE + 1e6).toISOString() });
      const seen: string[] = [];
      for (let path: string | undefined = PATH; path !== undefined; ) {
        const page = await owner.get(path);
        expect(page.status).to.equal(200);
        seen.push(...[...page.text.matchAll(/agents\/applications\/(tpc_\w+)"/g)].map(([, id = '']) => id));
        path = /<a href="([^"]+)" rel="next"/.exec(page.text)?.[1]?.replaceAll('&amp;', '&');
        await add(161 + seen.length, { created_at: new Date(SINCE + 2e6).toISOString() });
      }
      const added = Array.from({ length: 60 }, (_, n) => idOf(100 + n));
      expect(seen.filter((id) => added.includes(id)))
        .to.have.length(60)
        .and.to.have.members(added);
      expect((await owner.get(`${PATH}?from=nonsense!`)).status).to.equal(400);
    });

    it('are found by the beginning of their name, host or client_id, and by what became of them', async () => {
      await add(1, { client: { name: 'Ärmel' }, last_used_at: new Date(SINCE).toISOString() });
      const blocked = await add(2, { blocked_at: new Date(SINCE).toISOString() });
      for (const [query, id] of [
        ['text=%C3%84RM', idOf(1)],
        ['text=Agent-2.te', blocked],
        [`text=${blocked.toUpperCase()}`, blocked],
        ['state=blocked', blocked],
        ['state=used', idOf(1)],
      ] as const) {
        const ids = (await owner.get(`${PATH}?${query}`)).text.match(/applications\/tpc_\w+/g);
        expect(ids, query).to.deep.equal([`applications/${id}`]);
      }
      for (const query of ['text=nobody', 'state=constructor', 'text=%00', 'text[]=x'])
        expect((await owner.get(`${PATH}?${query}`)).status, query).to.equal(200);
    });

    it('show a name with invisible marks as code points, as not verified, with the host that access goes to', async () => {
      const id = await add(3, { client: { name: '\u202eknab <b>ruoY</b>' } });
      for (const path of [`${PATH}?text=${id}`, agentPath(id)]) {
        const { text } = await owner.get(path);
        for (const said of ['[U+202E]knab &lt;b&gt;', 'not verified', 'agent-3.test'])
          expect(text, path).to.contain(said);
        expect(text).not.to.contain('\u202e');
      }
    });

    it('whose access goes to a program on the user’s own device are shown with just that', async () => {
      const id = await add(4, { client: { callbacks: ['http://127.0.0.1/cb'] } });
      for (const path of [`${PATH}?text=${id}`, agentPath(id)])
        expect((await owner.get(path)).text, path).to.contain('A program on the user’s own device');
    });

    it('that an administrator made are apart, and first-party ones are no agents', async () => {
      const { text } = await owner.get(PATH);
      expect(text).to.contain(agentPath('partner'));
      expect(text).not.to.contain(agentPath('web'));
      expect((await owner.get(agentPath('partner'))).text).not.to.contain('/block"');
      for (const id of ['web', 'nobody', idOf(999), '__proto__']) {
        expect((await owner.get(agentPath(id))).status, id).to.equal(404);
        expect((await owner.post(`${agentPath(id)}/remove`)).status, id).to.equal(404);
      }
      expect((await owner.post(`${agentPath('partner')}/block`)).status).to.equal(404);
      expect(await server.store.collection('clients').get('web')).not.to.equal(undefined);
    });

    it('are blocked, which the engine knows with the next request, and unblocked', async () => {
      const id = await add(700);
      expect((await startOf(id)).status).to.be.below(400);
      expect((await owner.post(`${agentPath(id)}/block`)).status).to.equal(303);
      expect((await startOf(id)).status).to.equal(400);
      expect((await owner.get(agentPath(id))).text).to.contain('/unblock"');
      await owner.post(`${agentPath(id)}/unblock`);
      expect((await startOf(id)).status).to.be.below(400);
      const { records } = await server.store.collection('logs').list({ limit: 500 });
      const said = records.map(({ description }) => description);
      expect(said).to.include.members([
        'Block an application that registered itself',
        'Unblock an application that registered itself',
      ]);
    });

    it('stay blocked where a document describes them, which would else be read again when they are forgotten', async () => {
      const id = 'https://agent.test/client.json';
      const client = { client_id: id, external_metadata_type: 'cimd', external_client_id: id };
      const { client: made } = (await server.store.collection('registrations').get(await add(720))) ?? {};
      await server.store.collection('registrations').put({
        id,
        client: { ...clientSchema.parse({ ...made, ...client }), id },
        metadata: {},
        created_at: new Date(SINCE).toISOString(),
        expiresAt: Math.floor(Date.now() / 1000) + 1000,
      });
      const page = agentPath(encodeURIComponent(id));
      expect((await owner.get(page)).text).to.contain(id);
      expect((await owner.post(`${page}/block`)).status).to.equal(303);
      const blocked = await server.store.collection('registrations').get(id);
      expect(blocked).to.have.property('blocked_at');
      expect(blocked).not.to.have.property('expiresAt');
      await owner.post(`${page}/remove`);
      expect(await server.store.collection('registrations').get(id)).to.equal(undefined);
    });

    it('do not change or remove their registration while they are blocked', async () => {
      await owner.post(`${PATH}/registration`, { token: '', mode: 'strict', days: '7' });
      const made = (await register()).json() as Record<string, string>;
      const path = new URL(made.registration_client_uri ?? '').pathname;
      const headers = { Authorization: `Bearer ${made.registration_access_token}` };
      const ask = (method: string) => createAgent(server).request(path, { method, headers });
      await owner.post(`${agentPath(made.client_id ?? '')}/block`);
      expect((await ask('GET')).status).to.equal(403);
      expect((await ask('DELETE')).status).to.equal(403);
      await owner.post(`${agentPath(made.client_id ?? '')}/unblock`);
      expect((await ask('DELETE')).status).to.equal(204);
      await owner.post(`${PATH}/registration/off`);
    });

    it('are removed', async () => {
      const id = await add(800);
      const answer = await owner.post(`${agentPath(id)}/remove`);
      expect(answer.status).to.equal(303);
      expect(answer.location).to.match(/\/console\/agents\?said=console.said.deleted$/);
      expect(await server.store.collection('registrations').get(id)).to.equal(undefined);
    });

    it('have their users counted and listed by cursor, whose access administrators end', async () => {
      const id = await add(900);
      for (let n = 10; n < 40; n += 1) await consent(`auth0|${n}`, id, { '': ['openid'], 'urn:x': ['x'] });
      await consent('auth0|10', idOf(901));
      expect((await owner.get(`${PATH}?text=${id}`)).text).to.match(/<td class="number"[^>]*>30</);
      const first = await owner.get(agentPath(id));
      expect(first.text.match(/name="user"/g)).to.have.length(25);
      const next = /<a href="([^"]+)" rel="next"/.exec(first.text)?.[1] ?? '';
      expect((await owner.get(next)).text.match(/name="user"/g)).to.have.length(5);
      expect((await owner.post(`${agentPath(id)}/end`, { user: 'auth0|10' })).status).to.equal(303);
      const left = (await server.store.collection('consents').get(`auth0|10\n${id}`))?.scopes;
      expect(Object.keys(left ?? {})).not.to.include('');
      expect((await server.store.collection('consents').get(`auth0|10\n${idOf(901)}`))?.scopes).to.have.key(
        '',
      );
    });

    it('have offline access shown with the API, and not as if it said who the user is', async () => {
      const id = await add(910, { client: { name: 'Away' } });
      const offline = ['tools:read', 'offline_access'];
      await consent('auth0|910', id, { '': ['offline_access'], 'https://api.test/': offline });
      const away = (await owner.get(agentPath(id))).text;
      expect(away).to.contain('tools:read offline_access').and.not.to.contain('Who the user is');
      await consent('auth0|910', id, { '': ['openid', 'offline_access'], 'https://api.test/': offline });
      expect((await owner.get(agentPath(id))).text).to.match(
        /Who the user is: <code[^>]*>openid offline_access</,
      );
    });

    it('lead to their events in the log, and to those in which they acted for a user', async () => {
      const id = await add(960);
      const event = { date: new Date(SINCE).toISOString(), ip: '127.0.0.1', expiresAt: Date.now() };
      const type = 'success_on_behalf_of_token_exchange';
      const logs = server.store.collection('logs');
      await logs.insert({ ...event, id: '20261101a', type, client_id: 'web', details: { act: { sub: id } } });
      const chain = { sub: 'web', act: { sub: id } };
      await logs.insert({ ...event, id: '20261101b', type, client_id: 'web', details: { act: chain } });
      await logs.insert({ ...event, id: '20261101c', type: 's', client_id: id });
      const { text } = await owner.get(agentPath(id));
      for (const [query, found] of [
        [`client=${id}`, ['20261101c']],
        [`actor=${id}`, ['20261101b', '20261101a']],
      ] as const) {
        expect(text).to.contain(`href="/console/log?${query}"`);
        const log = await owner.get(`/console/log?${query}`);
        expect([...log.text.matchAll(/console\/log\/(2026\w+)/g)].map(([, one]) => one)).to.deep.equal(found);
        expect(log.text, 'the form keeps it').to.contain(`value="${id}"`);
      }
      const all = /href="(\/console\/log\?q=[^"]+)"/.exec((await owner.get(PATH)).text)?.[1];
      expect((await owner.get(all ?? '')).text)
        .to.contain('20261101a')
        .and.not.to.contain('20261101c');
    });

    it('are not changed by viewers', async () => {
      const id = await add(950);
      const { text } = await viewer.get(agentPath(id));
      for (const act of ['block', 'unblock', 'remove', 'end']) {
        expect(text).not.to.contain(`${agentPath(id)}/${act}"`);
        expect((await viewer.post(`${agentPath(id)}/${act}`, { user: 'x' })).status, act).to.equal(403);
      }
    });
  });

  describe('the APIs', () => {
    const apiId = async () =>
      (await server.store.collection('resourceServers').findBy('identifier', MCP))[0]?.id ?? '';
    const grants = async () =>
      (await server.store.collection('clientGrants').list({ limit: 100 })).records
        .filter(({ default_for: all, audience }) => all !== undefined && audience === MCP)
        .map(({ subject_type, scope }) => ({ subject_type, scope }));

    it('are opened to all third parties with the chosen scopes, changed, and closed', async () => {
      const path = `${PATH}/apis/${await apiId()}`;
      const save = (form: Record<string, string>) => owner.post(path, { policy: 'allow_all', ...form });
      expect((await save({ open: 'on', 'scope.tools:read': 'on', 'scope.admin': 'on' })).status).to.equal(
        303,
      );
      expect(await grants()).to.deep.equal([{ subject_type: 'user', scope: ['tools:read'] }]);
      expect((await owner.get(`${PATH}/registration`)).text).to.contain('tools:read');
      await save({ open: 'on', 'scope.tools:read': 'on', 'scope.tools:write': 'on' });
      expect(await grants()).to.deep.equal([{ subject_type: 'user', scope: ['tools:read', 'tools:write'] }]);
      expect((await owner.get(`${PATH}/apis`)).text).to.contain('Scopes: 2 of 2');
      await save({ policy: 'deny_all', open: 'on', 'scope.tools:read': 'on' });
      expect((await owner.get(`${PATH}/apis`)).text).to.match(/tag bad">Closed/);
      expect((await owner.get(`${PATH}/registration`)).text).to.contain('No API is open');
      await save({ policy: 'require_client_grant' });
      expect(await grants()).to.deep.equal([]);
      const api = await server.store.collection('resourceServers').get(await apiId());
      expect(api?.subject_type_authorization?.user).to.deep.equal({ policy: 'require_client_grant' });
    });

    it('are shown to viewers without a way to change them; those of the server are not there', async () => {
      const { text } = await viewer.get(`${PATH}/apis`);
      expect(text).to.contain(MCP);
      expect(text).not.to.contain(`href="${PATH}/apis/`);
      expect(text).not.to.contain('/api/v2/');
      expect((await viewer.post(`${PATH}/apis/${await apiId()}`, { open: 'on' })).status).to.equal(403);
      expect((await owner.get(`${PATH}/apis/nothing`)).status).to.equal(404);
      expect((await owner.post(`${PATH}/apis/nothing`, { open: 'on' })).status).to.equal(404);
    });
  });
});
