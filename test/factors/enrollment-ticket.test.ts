// Enrolment tickets, which the Management API issues: used once, and without a login.
import type { ManagementClient } from 'auth0';
import { expect } from 'chai';
import { callApi, managementClient, startManaged } from '../management/support.ts';
import { type Agent, createAgent } from '../support/agent.ts';
import { launchBrowser, type TestBrowser } from '../support/browser.ts';
import { nextMessageTo } from '../support/inbox.ts';
import type { TestServer } from '../support/server.ts';
import { codeOf, tenant } from './tenant.ts';

describe('enrolment tickets of second factors', () => {
  let server: TestServer;
  let management: ManagementClient;
  let browser: TestBrowser;
  let people = 0;

  before(async () => {
    server = await startManaged(tenant);
    management = managementClient(server);
    browser = await launchBrowser(server.ca);
  });
  after(async () => {
    await browser?.close();
    await server?.stop();
  });

  const someone = async () => {
    const email = `mfa-${people++}@example.test`;
    const [user] = await management.users.listUsersByEmail({ email });
    return { email, user_id: String(user?.user_id) };
  };
  const ticketFor = (user_id: string, over: object = {}) =>
    management.guardian.enrollments.createTicket({ user_id, factor: 'otp', ...over });
  const pathOf = (url = '') => new URL(url).pathname + new URL(url).search;
  const stepOf = (url: string | undefined, step: string) => pathOf(url).replace('?', `/${step}?`);
  const methodsOf = async (user_id: string) =>
    (await management.users.authenticationMethods.list(user_id)).data.filter(
      ({ type, confirmed }) => type !== 'password' && confirmed === true,
    );
  const csrfOf = (html: string) => /name="_csrf" value="([^"]+)"/.exec(html)?.[1] ?? '';
  const secretOf = (html: string) => /[A-Z2-7]{32}/.exec(html)?.[0] ?? '';
  const post = async (agent: Agent, path: string, code: string, page: string) =>
    agent.request(path, { form: { _csrf: csrfOf(page), code } });
  const expired = async (agent: Agent, path: string) => {
    const answer = await agent.get(path);
    expect(answer.status).to.equal(400);
    expect(answer.text).to.contain('This link');
  };

  it('open the page of one user in a browser, and are used up by the enrolment', async () => {
    const { user_id } = await someone();
    const { ticket_id, ticket_url = '' } = await ticketFor(user_id);
    expect(ticket_id).to.be.a('string');
    expect(ticket_url).not.to.contain(ticket_id);
    const context = await browser.newContext();
    const page = await context.newPage();
    await page.goto(ticket_url);
    await page.getByRole('link', { name: /Authenticator app/ }).click();
    const secret = secretOf(await page.content());
    await page.getByLabel('Code', { exact: true }).fill('000000');
    await page.getByRole('button', { name: 'Continue' }).click();
    await page.getByText('This code is wrong or expired.').waitFor();
    expect(secretOf(await page.content()), 'the same after a mistake').to.equal(secret);
    await page.getByLabel('Code', { exact: true }).fill(codeOf(secret));
    await page.getByRole('button', { name: 'Continue' }).click();
    await page.getByRole('heading', { name: 'Save your recovery code' }).waitFor();
    await page.getByLabel('I have saved the code').check();
    await page.getByRole('button', { name: 'Continue' }).click();
    await page.getByRole('heading', { name: 'You are done' }).waitFor();
    expect((await methodsOf(user_id)).map(({ type }) => type)).to.have.members(['totp', 'recovery-code']);
    // It was no login: nobody is logged in in this browser, and no session was created.
    expect((await management.users.sessions.list(user_id)).data).to.deep.equal([]);
    await page.goto(ticket_url);
    await page.getByText('This link').first().waitFor();
    await context.close();
  });

  it('enrol one authenticator for concurrent uses', async () => {
    const { user_id } = await someone();
    for (const several of [false, true]) {
      const { ticket_url } = await ticketFor(user_id, { allow_multiple_enrollments: several });
      const before = (await methodsOf(user_id)).filter(({ type }) => type === 'totp').length;
      const browsers = [createAgent(server), createAgent(server)];
      await browsers[0]?.get(stepOf(ticket_url, 'otp'));
      const answers = await Promise.all(
        browsers.map(async (agent) => {
          const page = (await agent.get(stepOf(ticket_url, 'otp'))).text;
          return () => post(agent, stepOf(ticket_url, 'otp'), codeOf(secretOf(page)), page);
        }),
      );
      await Promise.all(answers.map((send) => send()));
      expect((await methodsOf(user_id)).filter(({ type }) => type === 'totp')).to.have.length(before + 1);
      await expired(createAgent(server), pathOf(ticket_url));
      server.tick(31_000);
    }
  });

  it('are only issued for users without a second factor, unless they may add to existing ones', async () => {
    const { user_id } = await someone();
    await management.users.authenticationMethods.create(user_id, {
      type: 'totp',
      name: 'a',
      totp_secret: 'JBSWY3DPEHPK3PXP',
    });
    expect((await callApi(server, 'POST', '/guardian/enrollments/ticket', { user_id })).status).to.equal(400);
    const { ticket_url } = await ticketFor(user_id, { allow_multiple_enrollments: true });
    const agent = createAgent(server);
    const page = (await agent.get(stepOf(ticket_url, 'otp'))).text;
    // The user's existing factor cannot be used with the ticket.
    expect((await post(agent, stepOf(ticket_url, 'otp'), codeOf('JBSWY3DPEHPK3PXP'), page)).status).to.equal(
      400,
    );
    const done = await post(agent, stepOf(ticket_url, 'otp'), codeOf(secretOf(page)), page);
    expect(done.text).to.contain('You are done');
    expect((await methodsOf(user_id)).filter(({ type }) => type === 'totp')).to.have.length(2);
  });

  it('offer only the requested factor', async () => {
    const { user_id } = await someone();
    const { ticket_url } = await ticketFor(user_id, { factor: 'phone' });
    const agent = createAgent(server);
    const page = (await agent.get(pathOf(ticket_url))).text;
    expect(page).to.contain('/phone?ticket=');
    expect(page).not.to.contain('/otp?ticket=');
    expect((await agent.get(stepOf(ticket_url, 'otp'))).status).to.equal(400);
    const none = { user_id, factor: 'webauthn-roaming' };
    expect((await callApi(server, 'POST', '/guardian/enrollments/ticket', none)).status).to.equal(400);
  });

  it('expire, and end with a new password, a block, and the deletion of the user', async () => {
    const agent = createAgent(server);
    const endings: ((user_id: string) => PromiseLike<unknown>)[] = [
      (user_id) => management.users.update(user_id, { password: 'Another-Passw0rd!' }),
      (user_id) => management.users.update(user_id, { blocked: true }),
      (user_id) => management.users.delete(user_id),
    ];
    for (const end of endings) {
      const { user_id } = await someone();
      const { ticket_url } = await ticketFor(user_id);
      expect((await agent.get(pathOf(ticket_url))).status).to.equal(200);
      await end(user_id);
      await expired(agent, pathOf(ticket_url));
    }
    const { user_id } = await someone();
    const { ticket_url } = await ticketFor(user_id);
    server.tick(5 * 86_400_000 + 1_000);
    await expired(agent, pathOf(ticket_url));
    await expired(agent, '/u/mfa-enrollment?ticket=unknown');
    await expired(agent, '/u/mfa-enrollment/otp');
  });

  it('are mailed on request, and are not logged', async () => {
    const { email, user_id } = await someone();
    const { ticket_url = '' } = await ticketFor(user_id, { send_mail: true });
    const mail = await nextMessageTo(server, email);
    expect(JSON.stringify(mail)).to.contain(new URL(ticket_url).searchParams.get('ticket'));
    const secret = new URL(ticket_url).searchParams.get('ticket') ?? '';
    expect(await (await callApi(server, 'GET', '/logs?per_page=100')).text()).not.to.contain(secret);
    const challenges = await server.store.collection('challenges').findBy('user', user_id);
    expect(JSON.stringify(challenges)).not.to.contain(secret);
    const unknown = await callApi(server, 'POST', '/guardian/enrollments/ticket', {
      user_id: 'auth0|unknown',
    });
    expect(unknown.status).to.equal(404);
  });

  it('accept forms of their own pages only', async () => {
    const { user_id } = await someone();
    const { ticket_url } = await ticketFor(user_id);
    const agent = createAgent(server);
    const page = (await agent.get(stepOf(ticket_url, 'otp'))).text;
    const forged = await agent.request(stepOf(ticket_url, 'otp'), {
      form: { _csrf: 'x', code: codeOf(secretOf(page)) },
    });
    expect(forged.status).to.equal(403);
    expect(await methodsOf(user_id)).to.deep.equal([]);
  });
});
