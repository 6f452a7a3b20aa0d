// Actions of password-reset-post-challenge: the link of a reset alone does not set a password before they allow it.
import { expect } from 'chai';
import { startManaged } from '../management/support.ts';
import { type Answer, createAgent, readForm } from '../support/agent.ts';
import { tenant, token, USER } from '../support/flows.ts';
import { messagesTo, nextMessageTo } from '../support/inbox.ts';
import { SHORT_SCRIPTS, type TestServer } from '../support/server.ts';
import { actionFailures, bindActions, eventsOf, printed } from './support.ts';

const TRIGGER = 'password-reset-post-challenge';
const NEW = 'Another-Horse-2';

describe('actions of password-reset-post-challenge', () => {
  let server: TestServer;
  beforeEach(async () => {
    server = await startManaged(tenant, undefined, {}, { waits: SHORT_SCRIPTS });
  });
  afterEach(() => server.stop());

  const bind = (body: string, then = '') =>
    bindActions(server, TRIGGER, {
      code: `exports.onExecutePostChallenge = async (event, api) => {\n${body}\n};${
        then && `exports.onContinuePostChallenge = async (event, api) => {\n${then}\n};`
      }`,
      secrets: { SHARED: 'a-secret-of-the-reset-tests-0123' },
    });
  const link = async () => {
    const before = (await messagesTo(server, USER.email)).length;
    await createAgent(server).request('/dbconnections/change_password', {
      json: { connection: 'users', email: USER.email },
    });
    return (await nextMessageTo(server, USER.email, before + 1, 'link')).link ?? '';
  };
  const set = async (
    agent: ReturnType<typeof createAgent>,
    page: Answer,
    over: Record<string, string> = {},
  ) => {
    const { action, fields } = readForm(page, 'password');
    return agent.request(action, { form: { ...fields, password: NEW, repeat: NEW, ...over } });
  };
  const isNew = async () => {
    const answer = await token(createAgent(server), {
      grant_type: 'password',
      client_id: 'web',
      client_secret: 'web-secret',
      username: USER.email,
      password: NEW,
    });
    return answer.status === 200;
  };

  it('run before the form is shown, and allow it', async () => {
    await bind(`console.log('reset of ' + event.user.email + ' at ' + event.connection.name
      + ' by ' + event.authentication.methods[0].name + JSON.stringify(event));`);
    const agent = createAgent(server);
    const page = await agent.get(await link());
    expect(page.status).to.equal(200);
    const text = await printed(server, `reset of ${USER.email} at users by email`);
    const told = JSON.parse(text.slice(text.indexOf('{'), text.lastIndexOf('}') + 1));
    expect(told.authorization).to.deep.equal({ roles: [] });
    expect(told.transaction).to.include({ locale: 'en' });
    expect(told.user.identities).to.have.length(1);
    expect(told.user.identities[0]).to.include({ connection: 'users', provider: 'auth0' });
    expect(text).not.to.contain(readForm(page, 'password').fields.ticket);
    // A mistake is corrected in the same form.
    const differs = await set(agent, page, { repeat: 'other' });
    expect(differs.status).to.equal(400);
    expect((await set(agent, differs)).status).to.equal(200);
    expect(await isNew()).to.equal(true);
  });

  it('refuse a reset, whatever is posted', async () => {
    const url = await link();
    const agent = createAgent(server);
    const before = await agent.get(url);
    await bind(`api.access.deny('Please call us about this account.');`);
    const page = await agent.get(url);
    expect(page.status).to.equal(403);
    expect(page.text).to.contain('Please call us about this account.').and.not.contain('name="password"');
    expect((await eventsOf(server, 'fcp'))[0]).to.include({
      description: 'Please call us about this account.',
    });
    // A form from before the action was bound, without a proof, and with an invalid one.
    for (const proof of ['', 'A'.repeat(43)]) {
      const posted = await set(agent, before, { proof });
      expect(posted.status).to.equal(303);
      expect((await agent.get(posted.location)).status).to.equal(403);
    }
    expect(await isNew()).to.equal(false);
    // The link still works when the actions allow it later.
    await bind('');
    expect((await set(agent, await agent.get(url))).status).to.equal(200);
  });

  it('are asked in each browser: what one was allowed does not count in another', async () => {
    await bind(`if (event.request.user_agent === 'thief') api.access.deny('No.');`);
    const url = await link();
    const scanner = createAgent(server);
    expect((await scanner.get(url)).status).to.equal(200);
    const thief = createAgent(server);
    const refused = await thief.get(url, { 'user-agent': 'thief' });
    expect(refused.status).to.equal(403);
    const own = createAgent(server);
    const page = await own.get(url);
    const { action, fields } = readForm(page, 'password');
    const { proof: _, ...without } = fields;
    const posted = await own.request(action, { form: { ...without, password: NEW, repeat: NEW } });
    expect(posted.status).to.equal(303);
    expect(await isNew()).to.equal(false);
    expect((await set(own, page)).status).to.equal(200);
  });

  it('get the second factors of the user, and refuse the reset when they ask for another', async () => {
    await bind(`console.log('has ' + JSON.stringify(event.user.enrolledFactors));`);
    await createAgent(server).get(await link());
    await printed(server, 'has []');
    await bind(
      `if (event.user.enrolledFactors.length === 0) api.authentication.challengeWith({ type: 'otp' });`,
    );
    const agent = createAgent(server);
    expect((await agent.get(await link())).status).to.equal(403);
    expect((await eventsOf(server, 'fcp')).map(({ description }) => description).join()).to.contain(
      'A second factor is required that the user has not',
    );
    expect(await isNew()).to.equal(false);
  });

  it('refuse the reset when they fail', async () => {
    const url = await link();
    for (const body of [
      `throw new Error('The desk is closed.');`,
      `api.authentication.challengeWith({ type: 'otp' });`,
      'for (;;);',
    ]) {
      await bind(body);
      expect((await createAgent(server).get(url)).status).to.equal(403);
    }
    expect((await actionFailures(server)).join()).to.contain('The desk is closed.');
    expect(await isNew()).to.equal(false);
  });

  it('do not run for HEAD, which mail scanners send', async () => {
    await bind(`console.log('was run');`);
    const url = await link();
    expect((await createAgent(server).request(url, { method: 'HEAD' })).status).to.equal(200);
    expect(await printed(server)).not.to.contain('was run');
  });

  it('redirect the user, who comes back in the same browser, once', async () => {
    await bind(
      `api.transaction.setMetadata('case', 7);
       const session_token = api.redirect.encodeToken({ secret: event.secrets.SHARED, payload: { why: 'reset' } });
       api.redirect.sendUserTo('https://verify.example.test/id', { query: { session_token } });`,
      `if (event.request.query.passed !== 'yes') return api.access.deny('You were not recognised.');
       console.log('case ' + event.transaction.metadata.case);
       api.transaction.setResultUrl('https://app.example.test/welcome', { query: { from: 'reset' } });`,
    );
    const url = await link();
    const agent = createAgent(server);
    const away = new URL((await agent.get(url)).location);
    expect(away.origin + away.pathname).to.equal('https://verify.example.test/id');
    expect(away.searchParams.get('session_token')).to.be.a('string');
    const state = away.searchParams.get('state') ?? '';
    // Not before the user is back, and in no other browser.
    const back = (who: typeof agent, passed: string) => who.get(`/continue?state=${state}&passed=${passed}`);
    expect((await back(createAgent(server), 'yes')).status).to.equal(400);
    const returned = await back(agent, 'yes');
    expect(returned.status).to.equal(303);
    const page = await agent.get(returned.location);
    expect(page.status).to.equal(200);
    await printed(server, 'case 7');
    expect((await back(agent, 'yes')).status).to.equal(400);
    expect((await agent.get(returned.location)).status).to.equal(400);
    const done = await set(agent, page);
    expect(done.status).to.equal(303);
    expect(done.location).to.contain('https://app.example.test/welcome?from=reset&success=true');
    expect(await isNew()).to.equal(true);
  });

  it('refuse a user who comes back with the wrong answer', async () => {
    await bind(
      `api.redirect.sendUserTo('https://verify.example.test/id');`,
      `if (event.request.query.passed !== 'yes') api.access.deny('You were not recognised.');`,
    );
    const agent = createAgent(server);
    const url = await link();
    const state = new URL((await agent.get(url)).location).searchParams.get('state');
    const returned = await agent.get(`/continue?state=${state}`);
    const page = await agent.get(returned.location);
    expect(page.status).to.equal(403);
    expect(page.text).to.contain('You were not recognised.');
    expect(await isNew()).to.equal(false);
  });
});
