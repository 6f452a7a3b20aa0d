// Logging in to the console, and its sessions.
import { expect } from 'chai';
import { createAgent, readForm } from '../support/agent.ts';
import { addressOf, openConsole, PASSWORD, startConsole } from '../support/console.ts';
import { authorize, follow, pkce, spaRequest, submitLogin, USER } from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';

describe('the login to the console', () => {
  let server: TestServer;
  beforeEach(async () => {
    server = await startConsole();
  });
  afterEach(() => server.stop());

  it('returns to the requested page', async () => {
    const { get } = await openConsole(server);
    const page = await get('/console');
    expect(page.status).to.equal(200);
    expect(page.text).to.contain('The owner');
    expect(page.headers['content-security-policy']).to.contain("frame-ancestors 'none'");
    expect(page.headers['cross-origin-opener-policy']).to.equal('same-origin');
    expect(page.headers['cache-control']).to.equal('no-store');
  });

  it('isolates its window from other pages, which may have scripts of the tenant', async () => {
    const agent = createAgent(server);
    const asked = await follow(agent, await agent.get('/console'), server.url);
    expect(asked.text).to.contain('name="password"');
    expect(asked.headers['cross-origin-opener-policy']).to.equal('same-origin');
    const other = await follow(agent, await authorize(agent, spaRequest(pkce().challenge)), server.url);
    expect(other.headers['cross-origin-opener-policy']).to.equal('unsafe-none');
  });

  it('rejects users of the tenant, with their password or an existing session', async () => {
    const agent = createAgent(server);
    const login = await follow(agent, await authorize(agent, spaRequest(pkce().challenge)), server.url);
    await submitLogin(agent, server, login, USER);
    const asked = await follow(agent, await agent.get('/console'), server.url);
    expect(asked.text).to.contain('name="password"');
    const { action, fields } = readForm(asked, 'password');
    const form = { ...fields, username: USER.email, password: USER.password };
    const refused = await follow(agent, await agent.request(action, { form }), server.url);
    expect(refused.text).to.contain('name="password"');
    expect((await agent.get('/console')).status).to.equal(303);
  });

  it('gives administrators no login at applications, with their password or a session', async () => {
    const { agent } = await openConsole(server);
    const asked = await follow(agent, await authorize(agent, spaRequest(pkce().challenge)), server.url);
    const { action, fields } = readForm(asked, 'password');
    const form = { ...fields, username: addressOf('owner'), password: PASSWORD };
    const refused = await follow(agent, await agent.request(action, { form }), server.url);
    expect(refused.text).to.contain('name="password"');
    const silent = await authorize(agent, spaRequest(pkce().challenge, { prompt: 'none' }));
    expect(silent.location).to.contain('login_required');
  });

  it("keeps the console's session when a user logs in to an application in the same browser", async () => {
    const { agent } = await openConsole(server);
    const login = await follow(agent, await authorize(agent, spaRequest(pkce().challenge)), server.url);
    await submitLogin(agent, server, login, USER);
    expect((await agent.get('/console')).status).to.equal(200);
  });

  it('has the default limits of wrong passwords, whatever an editor has set for the tenant', async () => {
    const editor = await openConsole(server, 'editor');
    for (const [form, fields] of Object.entries({
      bruteForce: { max_attempts: '100', mode: 'count_per_identifier', allowlist: '127.0.0.1' },
      suspiciousIp: { login: '100000', signup: '100000', allowlist: '127.0.0.1' },
    }))
      expect((await editor.post(`/console/security/attacks/${form}`, fields)).status, form).to.equal(303);
    const submit = async (password: string) => {
      const agent = createAgent(server);
      const page = await follow(agent, await agent.get('/console'), server.url);
      const { action, fields } = readForm(page, 'password');
      const form = { ...fields, username: addressOf('owner'), password };
      return follow(agent, await agent.request(action, { form }), server.url);
    };
    for (let tries = 0; tries < 10; tries++)
      expect((await submit('wrong-Password-1')).status, `try ${tries}`).to.be.within(400, 428);
    expect((await submit(PASSWORD)).status).to.equal(429);
  });

  it('redirects to no other site', async () => {
    const agent = createAgent(server);
    const asked = await agent.get('/console?to=//evil.example');
    expect(asked.status).to.equal(303);
    expect(new URL(asked.location).origin).to.equal(server.url);
  });

  it('ends with a logout, a new password, a block, and the loss of the role', async () => {
    const one = await openConsole(server, 'editor');
    await one.post('/console/logout');
    expect((await one.agent.get('/console')).status).to.equal(303);

    const [editor] = await server.administrators.withEmail(addressOf('editor'));
    const other = await openConsole(server, 'editor');
    await server.administrators.update(editor?.id ?? '', { blocked: true });
    expect((await other.agent.get('/console')).status).to.equal(303);
    await server.administrators.update(editor?.id ?? '', { blocked: false });
    expect((await other.agent.get('/console')).status).to.equal(200);
    await server.administrators.setPassword(editor?.id ?? '', 'Another-Horse-2');
    expect((await other.agent.get('/console')).status).to.equal(303);

    const viewer = await openConsole(server, 'viewer');
    await server.store.collection('administrators').update('administrators', (current) => ({
      ...current,
      members: current.members.filter(({ role }) => role !== 'viewer'),
    }));
    expect((await viewer.agent.get('/console')).status).to.equal(303);
  });

  it('rejects foreign forms, and requests of scripts and frames without the token', async () => {
    const { agent } = await openConsole(server);
    const { fields } = readForm(await agent.get('/console'), '_csrf');
    for (const _csrf of ['', 'x', agent.cookies().find(({ name }) => name.endsWith('console'))?.value ?? ''])
      expect((await agent.request('/console/logout', { form: { _csrf } })).status).to.equal(403);
    for (const dest of ['empty', 'iframe', 'image', 'object']) {
      expect((await agent.get('/console', { 'sec-fetch-dest': dest })).status, dest).to.equal(403);
    }
    const brought = { 'sec-fetch-dest': 'empty', 'x-console-token': fields._csrf ?? '' };
    expect((await agent.get('/console', brought)).status).to.equal(200);
    const cross = { origin: 'https://evil.example' };
    const form = { _csrf: fields._csrf ?? '' };
    expect((await agent.request('/console/logout', { form, headers: cross })).status).to.equal(403);
    expect((await agent.request('/console/logout', { form })).status).to.equal(303);
  });
});
