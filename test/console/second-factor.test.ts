// Second factors of administrators: set up on the account page, required at the console.
import { expect } from 'chai';
import { codeOf, factors } from '../factors/tenant.ts';
import { createAgent, readForm } from '../support/agent.ts';
import { launchBrowser, type TestBrowser } from '../support/browser.ts';
import { addressOf, openConsole, openConsolePage, PASSWORD, startConsole } from '../support/console.ts';
import { authorize, follow, pkce, spaRequest, tenant } from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';

describe('second factors of administrators', () => {
  let server: TestServer;
  let browser: TestBrowser | undefined;
  const start = async (...names: string[]) => {
    server = await startConsole({
      tenant: {
        ...tenant,
        tenant: { ...tenant.tenant, account_page: { allow_deletion: true } },
        guardianFactors: factors(...names),
      },
    });
  };
  afterEach(async () => {
    await browser?.close();
    await server.stop();
  });

  it("are set up by administrators, and then required whatever the tenant's policy", async () => {
    await start('otp');
    browser = await launchBrowser(server.ca);
    const context = await browser.newContext({ reducedMotion: 'reduce' });
    const page = await context.newPage();
    await openConsolePage(page, server, { path: '/console/password' });
    await page.getByRole('link', { name: 'Set up a second factor' }).click();
    const logIn = async () => {
      await page.locator('input[name="username"]').fill(addressOf('owner'));
      await page.locator('input[name="password"]').fill(PASSWORD);
      await page.locator('form button[type="submit"]').first().click();
    };
    await logIn();
    await page.getByRole('link', { name: 'Add a second step' }).click();
    await page.locator('a[href="/account/security/add/otp"]').click();
    await page.locator('summary').click();
    const secret = ((await page.locator('.secret code').textContent()) ?? '').replace(/\s/g, '');
    await page.getByLabel('Code', { exact: true }).fill(codeOf(secret));
    await page.getByRole('button', { name: 'Continue' }).click();
    await page.getByText('Added.', { exact: true }).waitFor();
    await page.goto(`${server.url}/console`);
    await logIn();
    server.tick(30_000);
    await page.getByLabel('Code', { exact: true }).fill(codeOf(secret, Date.now() + 30_000));
    await page.getByRole('button', { name: 'Continue' }).click();
    await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
  });

  it('are required at the console once enrolled; an e-mail address does not count as one', async () => {
    await start('otp', 'email');
    const before = await openConsole(server);
    expect((await before.get('/console')).status).to.equal(200);
    const [owner] = await server.administrators.withEmail(addressOf('owner'));
    const secret = 'JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP';
    await server.store.collection('authenticators').insert({
      id: 'totp|dev_owner',
      user_id: owner?.id ?? '',
      kind: 'otp',
      active: true,
      secret,
      created_at: new Date().toISOString(),
    } as never);
    expect((await before.agent.get('/console')).status).to.equal(303);
    const agent = createAgent(server);
    const login = await follow(agent, await agent.get('/console'), server.url);
    const { action, fields } = readForm(login, 'password');
    const form = { ...fields, username: addressOf('owner'), password: PASSWORD };
    const asked = await follow(agent, await agent.request(action, { form }), server.url);
    expect(asked.text).to.contain('name="code"');
    expect((await agent.get('/console')).status).to.equal(303);
    const factor = readForm(asked, 'code');
    const wrong = await agent.request(factor.action, { form: { ...factor.fields, code: '000000' } });
    expect(wrong.status).to.be.within(400, 499);
    const right = { ...factor.fields, code: codeOf(secret) };
    const done = await follow(agent, await agent.request(factor.action, { form: right }), server.url);
    expect(done.text).to.contain('The owner');
  });

  it('stay required when an editor switches the factors of the tenant off', async () => {
    await start('otp');
    const [owner] = await server.administrators.withEmail(addressOf('owner'));
    const secret = 'JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP';
    await server.store.collection('authenticators').insert({
      id: 'totp|dev_owner',
      user_id: owner?.id ?? '',
      kind: 'otp',
      active: true,
      secret,
      created_at: new Date().toISOString(),
    } as never);
    const editor = await openConsole(server, 'editor');
    await editor.get('/console/security/factors');
    expect((await editor.post('/console/security/factors', { policy: 'never' })).status).to.equal(303);
    expect((await editor.get('/console/security/factors')).text).not.to.match(
      /name="factor-otp"[^>]* checked/,
    );
    const agent = createAgent(server);
    const login = await follow(agent, await agent.get('/console'), server.url);
    const { action, fields } = readForm(login, 'password');
    const form = { ...fields, username: addressOf('owner'), password: PASSWORD };
    const asked = await follow(agent, await agent.request(action, { form }), server.url);
    expect((await agent.get('/console')).status, 'by the password alone').to.equal(303);
    expect(asked.text).to.contain('name="code"');
    const factor = readForm(asked, 'code');
    const wrong = await agent.request(factor.action, { form: { ...factor.fields, code: '000000' } });
    expect(wrong.status).to.be.within(400, 499);
    const right = { ...factor.fields, code: codeOf(secret) };
    const done = await follow(agent, await agent.request(factor.action, { form: right }), server.url);
    expect(done.text).to.contain('The owner');
  });

  it('are never by e-mail or SMS: editors set up the providers and read the messages', async () => {
    await start('otp', 'email', 'sms');
    const [owner] = await server.administrators.withEmail(addressOf('owner'));
    await server.store.collection('authenticators').insert({
      id: 'totp|dev_owner',
      user_id: owner?.id ?? '',
      kind: 'otp',
      active: true,
      secret: 'JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP',
      created_at: new Date().toISOString(),
    } as never);
    const agent = createAgent(server);
    const login = await follow(agent, await agent.get('/console'), server.url);
    const { action, fields } = readForm(login, 'password');
    const form = { ...fields, username: addressOf('owner'), password: PASSWORD };
    const asked = await follow(agent, await agent.request(action, { form }), server.url);
    const { pathname } = new URL(readForm(asked, 'code').action, server.url);
    const uid = pathname.split('/')[2];
    for (const page of ['mfa', 'mfa/email', 'mfa/sms', 'mfa/choose']) {
      const chosen = await follow(agent, await agent.get(`/u/${uid}/${page}`), server.url);
      expect(chosen.text, page).not.to.match(/mfa\/(email|sms)|value="(email|sms)"/);
    }
    const sent = await server.store.collection('deliveries').list({});
    expect(sent.records).to.deep.equal([]);
    const editor = createAgent(server);
    const account = await follow(
      editor,
      await editor.get('/account?client_id=gatehouse-console'),
      server.url,
    );
    const first = readForm(account, 'password');
    const typed = { ...first.fields, username: addressOf('editor'), password: PASSWORD };
    await follow(editor, await editor.request(first.action, { form: typed }), server.url);
    const add = await follow(editor, await editor.get('/account/security/add'), server.url);
    expect(add.text).to.contain('/account/security/add/otp');
    expect(add.text).not.to.match(/\/account\/security\/add\/(email|sms)/);
  });

  it('are set up in an account that cannot be deleted or used for applications', async () => {
    await start('otp');
    const agent = createAgent(server);
    const open = async (path: string) => {
      const page = await follow(agent, await agent.get(path), server.url);
      if (!page.text.includes('name="password"')) return page;
      const { action, fields } = readForm(page, 'password');
      const form = { ...fields, username: addressOf('editor'), password: PASSWORD };
      return follow(agent, await agent.request(action, { form }), server.url);
    };
    await open('/account?client_id=gatehouse-console');
    const silent = await authorize(agent, spaRequest(pkce().challenge, { prompt: 'none' }));
    expect(silent.location).to.contain('login_required');
    const security = await agent.get('/account/security');
    expect(security.headers['cross-origin-opener-policy']).to.equal('same-origin');
    expect(security.text).not.to.contain('/account/security/password');
    const page = await agent.get('/account/data');
    expect(page.text).not.to.contain('name="confirm"');
    const { fields } = readForm(await agent.get('/account'), '_csrf');
    const form = { ...fields, confirm: addressOf('editor') };
    await agent.request('/account/data/delete', { form });
    expect(await server.administrators.withEmail(addressOf('editor'))).to.have.length(1);
    await agent.request('/account/security/password', { form: { ...fields } });
    const [editor] = await server.administrators.withEmail(addressOf('editor'));
    const begun = await server.store.collection('challenges').findBy('user', editor?.id ?? '');
    expect(begun.map(({ purpose }) => purpose)).to.deep.equal(['account_page']);
  });

  it("are set up on pages without the tenant's branding, which scripts of other pages cannot open", async () => {
    await start('otp');
    const own =
      '<html><head>{%- auth0:head -%}</head><body id="of-the-tenant">{%- auth0:widget -%}</body></html>';
    const owner = await openConsole(server);
    const kept = await owner.post('/console/branding/template', { source: own });
    expect(kept.location, kept.text).to.contain('said=');
    const stranger = createAgent(server);
    const login = await follow(stranger, await authorize(stranger, spaRequest(pkce().challenge)), server.url);
    expect(login.text).to.contain('of-the-tenant');
    const open = async (path: string) => {
      const page = await owner.get(path);
      expect(page.status, page.text).to.equal(200);
      return page;
    };
    await open('/account?client_id=gatehouse-console');
    const setUp = await open('/account/security/add/otp');
    expect(setUp.text).to.contain('name="code"').and.not.to.contain('of-the-tenant');
    for (const path of [
      '/account',
      '/account/security',
      '/account/security/add',
      '/account/security/add/otp',
    ])
      for (const dest of ['empty', 'iframe']) {
        const headers = { 'Sec-Fetch-Dest': dest, 'Sec-Fetch-Site': 'same-origin' };
        expect((await owner.agent.get(path, headers)).status, path).to.equal(403);
      }
  });

  it("cannot be set up by a forged form, even with the user's id and the browser's token", async () => {
    await start('otp');
    const owner = await openConsole(server);
    const open = async (path: string) => {
      const page = await owner.get(path);
      expect(page.status, page.text).to.equal(200);
      return page;
    };
    const profile = await open('/account?client_id=gatehouse-console');
    const [{ id = '' } = {}] = await server.administrators.withEmail(addressOf('owner'));
    const { _csrf = '', account = '' } = readForm(profile, '_csrf').fields;
    expect(account.length).to.be.at.least(43);
    expect(account).to.not.contain(id);
    const nameNow = async () => (await server.administrators.withEmail(addressOf('owner')))[0]?.name;
    await owner.agent.request('/account', { form: { _csrf, account: id, name: 'Forged' } });
    expect(await nameNow()).to.equal('The owner');
    const setUp = await open('/account/security/add/otp');
    const own = readForm(setUp, 'code');
    expect(own.action).to.contain('?account=');
    const begun = async () => (await server.store.collection('authenticators').findBy('user', id))[0];
    const form = { ...own.fields, code: codeOf(String((await begun())?.secret)) };
    for (const path of ['/account/security/add/otp', `/account/security/add/otp?account=${id}`]) {
      const forged = await owner.agent.request(path, { form });
      expect(forged.status, path).to.equal(403);
    }
    expect((await begun())?.active).to.equal(false);
    expect((await owner.agent.request(own.action, { form })).status).to.be.below(400);
    expect((await begun())?.active).to.equal(true);
  });
});
