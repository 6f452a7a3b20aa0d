// An action of password-reset-post-challenge asks for a second factor, so that the mail alone is not enough to set a
// password.
import { expect } from 'chai';
import { callsOf, codeOf, tenant } from '../factors/tenant.ts';
import { startManaged } from '../management/support.ts';
import { type Agent, type Answer, createAgent, readForm } from '../support/agent.ts';
import { follow, USER } from '../support/flows.ts';
import { messagesTo, nextMessageTo } from '../support/inbox.ts';
import type { TestServer } from '../support/server.ts';
import { bindActions, eventsOf, managed, printed } from './support.ts';

const EMAIL = 'mfa-1@example.test';
const OTHER = 'mfa-2@example.test';
const NEW = 'Another-Horse-2';
const PAGES = '/u/mfa-challenge';

describe('a second factor at a password reset', () => {
  let server: TestServer;
  let secret: string;
  let recoveryCode: string;
  beforeEach(async () => {
    server = await startManaged(tenant);
    ({ secret, recoveryCode } = await callsOf(server).enrollOtp(EMAIL, 'leeway'));
    await managed(server, 'PUT', '/guardian/policies', [] as unknown as object);
  });
  afterEach(() => server.stop());

  const bind = (...bodies: string[]) =>
    bindActions(
      server,
      'password-reset-post-challenge',
      ...bodies.map((body) => ({
        code: `exports.onExecutePostChallenge = async (event, api) => {\n${body}\n};
          exports.onContinuePostChallenge = async () => {};`,
      })),
    );
  const link = async (email = EMAIL) => {
    // The mail about the added factor has no link, and may arrive at any time.
    const before = (await messagesTo(server, email)).filter((one) => one.link !== undefined).length;
    const json = { connection: 'users', email };
    await createAgent(server).request('/dbconnections/change_password', { json });
    return (await nextMessageTo(server, email, before + 1, 'link')).link ?? '';
  };
  const open = async (agent: Agent, url: string) => follow(agent, await agent.get(url), server.url);
  const give = async (agent: Agent, page: Answer, code: string) => {
    const form = readForm(page, 'code');
    return follow(agent, await agent.request(form.action, { form: { ...form.fields, code } }), server.url);
  };
  const later = () => codeOf(secret, Date.now() + 30_000);
  const set = (agent: Agent, page: Answer) => {
    const { action, fields } = readForm(page, 'password');
    return agent.request(action, { form: { ...fields, password: NEW, repeat: NEW } });
  };
  const isNew = async () => (await callsOf(server).login(EMAIL, { password: NEW })).status === 200;

  it('is asked for before the form is shown, and later actions learn of it', async () => {
    await bind(
      `api.authentication.challengeWith({ type: 'otp' });`,
      `console.log('methods ' + event.authentication.methods.map(({ name }) => name));`,
    );
    const agent = createAgent(server);
    const asked = await open(agent, await link());
    expect(asked.text).not.to.contain('name="password"');
    const wrong = await give(agent, asked, '000000');
    expect(wrong.status).to.equal(400);
    const page = await give(agent, wrong, later());
    await printed(server, 'methods email,mfa');
    expect((await set(agent, page)).status).to.equal(200);
    expect(await isNew()).to.equal(true);
  });

  it('can be chosen from several; a recovery code is replaced, and shown', async () => {
    await bind(
      `api.authentication.challengeWithAny([{ type: 'otp' }, { type: 'recovery-code' }, { type: 'phone' }]);`,
    );
    const agent = createAgent(server);
    const choice = await open(agent, await link());
    expect(choice.text).to.contain(`${PAGES}/otp`).and.contain(`${PAGES}/recovery-code`);
    expect(choice.text).not.to.contain(`${PAGES}/phone`);
    expect((await agent.get(`${PAGES}/phone`)).status).to.equal(400);
    const shown = await give(agent, await agent.get(`${PAGES}/recovery-code`), recoveryCode);
    const { action, fields } = readForm(shown, 'saved');
    const saved = await agent.request(action, { form: { ...fields, saved: 'yes' } });
    const page = await follow(agent, saved, server.url);
    expect((await set(agent, page)).status).to.equal(200);
    expect(await isNew()).to.equal(true);
  });

  it('is asked for once by several actions that accept it, and again by one that does not', async () => {
    const otp = `api.authentication.challengeWith({ type: 'otp' });`;
    await bind(otp, otp, `api.authentication.challengeWith({ type: 'recovery-code' });`);
    const agent = createAgent(server);
    const next = await give(agent, await open(agent, await link()), later());
    expect(next.text).to.contain(`${PAGES}/recovery-code`).and.not.contain('name="password"');
  });

  it('cannot be avoided by an earlier form, the way back, another browser or another link', async () => {
    const url = await link();
    const agent = createAgent(server);
    const before = await agent.get(url);
    await bind(`api.authentication.challengeWith({ type: 'otp' });`);
    expect((await set(agent, before)).status).to.equal(303);
    const asked = await open(agent, url);
    for (const path of ['/u/reset-password/return', '/continue', '/u/reset-password/return?ticket=x']) {
      const answer = await follow(agent, await agent.get(path), server.url);
      expect(answer.text, path).not.to.contain('name="password"');
    }
    // The page and what follows it belong to this browser.
    const stranger = createAgent(server);
    expect((await stranger.get(PAGES)).status).to.equal(400);
    const form = readForm(asked, 'code');
    const elsewhere = await stranger.request(form.action, { form: { ...form.fields, code: later() } });
    expect(elsewhere.status).to.be.within(400, 403);
    // Another user's link in the same browser asks for that user's factor.
    expect((await agent.get(await link(OTHER))).status).to.equal(403);
    expect(await isNew()).to.equal(false);
  });

  it('is due for each request: one that was given for an earlier request does not count', async () => {
    const away = `api.redirect.sendUserTo('https://verify.example.test/id');`;
    await bind(away, `api.authentication.challengeWith({ type: 'otp' });`);
    const url = await link();
    const stateOf = ({ location }: Answer) => new URL(location).searchParams.get('state') ?? '';
    const [first, second] = [createAgent(server), createAgent(server)];
    const left = await first.get(url);
    const back = await first.get(`/continue?state=${stateOf(left)}`);
    const leftToo = await second.get(url);
    // Both browsers were redirected. Whichever comes to the factor, the other has only been redirected.
    await first.get(back.location);
    const backToo = await second.get(`/continue?state=${stateOf(leftToo)}`);
    for (const agent of [second, first]) {
      const answer = await agent.get(agent === second ? backToo.location : back.location);
      const end = await follow(agent, answer, server.url);
      expect(end.text).not.to.contain('name="password"');
    }
  });

  it('is asked for with each type that is required: one does not stand for another', async () => {
    await bind(
      `api.authentication.challengeWith({ type: 'otp' });`,
      `api.authentication.challengeWith({ type: 'recovery-code' });`,
    );
    const url = await link();
    const [first, second] = [createAgent(server), createAgent(server)];
    const answered = async (agent: Agent, code: string) => {
      const form = readForm(await open(agent, url), 'code');
      return agent.request(form.action, { form: { ...form.fields, code } });
    };
    const given = await answered(first, codeOf(secret, Date.now()));
    const asked = readForm(await open(second, url), 'code');
    const next = await follow(first, given, server.url);
    expect(next.text).not.to.contain('name="password"');
    const code = later();
    const late = await second.request(asked.action, { form: { ...asked.fields, code } });
    const end = await follow(second, late, server.url);
    expect(end.text).not.to.contain('name="password"');
  });

  it('opens one form, after which the pages are over', async () => {
    await bind(`api.authentication.challengeWith({ type: 'otp' });`);
    const agent = createAgent(server);
    const url = await link();
    const page = await give(agent, await open(agent, url), later());
    expect((await agent.get(PAGES)).status).to.equal(400);
    // The link asks again when it is opened again.
    expect((await open(createAgent(server), url)).text).not.to.contain('name="password"');
    expect((await set(agent, page)).status).to.equal(200);
  });

  it('does not help a user whom an action denies afterwards', async () => {
    await bind(`api.authentication.challengeWith({ type: 'otp' });`, `api.access.deny('Please call us.');`);
    const agent = createAgent(server);
    const done = await give(agent, await open(agent, await link()), later());
    expect(done.status).to.equal(403);
    expect(done.text).to.contain('Please call us.');
    expect((await eventsOf(server, 'fcp')).at(-1)).to.include({ description: 'Please call us.' });
  });

  it('refuses the reset of a user who has none, or none of the named ones', async () => {
    await bind(`api.authentication.challengeWith({ type: 'phone' });`);
    for (const email of [EMAIL, OTHER, USER.email]) {
      const refused = await createAgent(server).get(await link(email));
      expect(refused.status, email).to.equal(403);
    }
  });
});
