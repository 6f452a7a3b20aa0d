// Entrances that ask for another proof than a login of the session or token (BY_OTHER_PROOF): the best login there is
// changes nothing there without the proof, and with it the change is made.
import { expect } from 'chai';
import { formOf, send } from '../account/support.ts';
import { codeOf } from '../factors/tenant.ts';
import { type Agent, type Answer, createAgent, readForm } from '../support/agent.ts';
import { follow, submitLogin } from '../support/flows.ts';
import { nextMessageTo } from '../support/inbox.ts';
import { resetForm } from '../support/reset.ts';
import { BY_OTHER_PROOF } from './entrances.ts';
import { byPage, PASSWORD, startWorld } from './world.ts';

/** Bodies with which an entrance gets as far as its proof. */
const FIELDS = {
  ...{ password: 'Third-Horse-3', new_password: 'Third-Horse-3', 'password-again': 'Third-Horse-3' },
  ...{ ticket: 'x'.repeat(43), state: 'x'.repeat(43), code: '123456', otp: '123456', decision: 'accept' },
  ...{ request: 'x', user_code: 'BBBB-BBBB', token: 'x', mfa_token: 'x'.repeat(43), realm: 'users' },
  ...{ connection: 'users', client_id: 'site', challenge_type: 'otp', grant_type: 'password' },
};

/** The collections that say who can log in as a user, and what others may do for them. */
const KEPT = [
  ...(['identities', 'authenticators', 'passkeys'] as const),
  ...(['consents', 'memberships', 'connectedAccounts'] as const),
];

describe('an entrance that asks for another proof than a login', () => {
  let world: Awaited<ReturnType<typeof startWorld>>;
  before(async () => {
    world = await startWorld('suggest');
  });
  after(() => world.stop());

  /** Returns all that is stored of a user and decides who can log in as them, and what others may do for them. */
  const stateOf = async (id: string) => {
    const { store } = world.server;
    const user = await store.collection('users').get(id);
    const { last_login: _1, last_ip: _2, logins_count: _3, updated_at: _4, ...rest } = user ?? {};
    const state: Record<string, unknown> = { rest };
    for (const name of KEPT) state[name] = await store.collection(name).findBy('user', id);
    state.credential = await store.collection('credentials').get(id);
    return JSON.parse(JSON.stringify(state)) as Record<string, unknown>;
  };
  /** A browser that waits at the login page. */
  const waiting = async () => {
    const browser = createAgent(world.server);
    const page = await world.open(browser);
    return { browser, page, uid: /\/u\/([\w-]+)\//.exec(readForm(page, 'password').action)?.[1] ?? '' };
  };
  const answerOf = async (agent: Agent, answer: Promise<Answer>) =>
    follow(agent, await answer, world.server.url);

  for (const [proof, keys] of Object.entries(BY_OTHER_PROOF))
    it(`changes nothing without ${proof}`, async () => {
      const { server } = world;
      const owner = await world.someone();
      const other = await waiting();
      const { browser, tokens = {}, email = '' } = await byPage(world, await world.someone());
      const data = await follow(browser, await browser.get('/account/data'), server.url);
      const form = { ...FIELDS, ...formOf(data, '/account/data/copy') };
      const before = [await stateOf(await idOf(owner)), await stateOf(await idOf(email))];
      for (const key of keys) {
        const path = (key.split(' ')[1] ?? '')
          .replace(':uid', other.uid)
          .replace(':factor', 'otp')
          .replace(':connection', 'users')
          .replace(':channel', 'email')
          .replaceAll(/:\w+/g, 'unknown');
        for (const username of [owner, email])
          for (const bearer of Object.values(tokens)) {
            const identity = { username, email: username };
            const headers = { authorization: `Bearer ${bearer}` };
            const answer = await browser.request(path, { form: { ...form, ...identity }, headers });
            expect(answer.status, `${key}: ${answer.text.slice(0, 200)}`).to.be.below(500);
            // Whatever the answer says, it hands nothing over.
            expect(answer.location, key).not.to.match(/[?&#](code|access_token|id_token)=/);
            expect(answer.text, key).not.to.match(/"(access_token|id_token|refresh_token)"/);
          }
      }
      expect([await stateOf(await idOf(owner)), await stateOf(await idOf(email))]).to.deep.equal(before);
    });

  /** Makes a change with the proof that an entrance asks for. @returns the members of the account that change. */
  const WITH_PROOF: Record<string, (email: string) => Promise<string[]>> = {
    'POST /u/reset-password': async (email) => {
      const { ticket } = (await ticketOf('/tickets/password-change', email)).json();
      const done = await (await resetForm(world.server, ticket))('Third-Horse-3');
      expect(done.status, done.text).to.equal(200);
      // Nobody had proved the address, so what was consented to before ends.
      return ['consents', 'credential', 'rest'];
    },
    'POST /u/email-verification': async (email) => {
      const { ticket } = (await ticketOf('/tickets/email-verification', email)).json();
      const agent = createAgent(world.server);
      const { action, fields } = readForm(await agent.get(pathOf(ticket)), 'ticket');
      await agent.request(action, { form: { ...fields, decision: 'verify' } });
      return ['rest'];
    },
    'POST /u/mfa-enrollment/:factor': async (email) => {
      const { ticket_url } = (await ticketOf('/guardian/enrollments/ticket', email)).json();
      const agent = createAgent(world.server);
      const page = await agent.get(pathOf(ticket_url).replace('?', '/otp?'));
      const { action, fields } = readForm(page, 'code');
      const secret = (/[A-Z2-7]{4}( [A-Z2-7]{4}){3,}/.exec(page.text)?.[0] ?? '').replaceAll(' ', '');
      await agent.request(action, { form: { ...fields, code: codeOf(secret) } });
      return ['authenticators'];
    },
    'POST /account/email': async (email) => {
      const { browser } = await world.logIn(email);
      const page = await follow(browser, await browser.get('/account'), world.server.url);
      const wanted = `new-${email}`;
      await send(browser, page, '/account/profile/email', { email: wanted });
      const { link = '' } = await nextMessageTo(world.server, wanted, 1, 'link');
      await send(browser, await browser.get(pathOf(link)), '/account/email');
      return ['identities', 'rest'];
    },
    'POST /account/applications/link/confirm': async (email) => {
      const goes = await world.someone();
      for (const one of [email, goes])
        await world.server.users.update(await idOf(one), { email_verified: true });
      const { browser } = await world.logIn(email);
      const path = '/account/applications';
      const page = await follow(browser, await browser.get(path), world.server.url);
      const login = await answerOf(browser, send(browser, page, `${path}/link`));
      const both = await submitLogin(browser, world.server, login, { email: goes, password: PASSWORD });
      await send(browser, both, `${path}/link/confirm`);
      return ['identities', 'rest'];
    },
    'POST /u/:uid/consent': async (email) => {
      const { browser } = await world.logIn(email);
      const page = await world.open(browser, { client_id: 'stranger', scope: 'openid profile' });
      const { action, fields } = readForm(page, '_csrf');
      await answerOf(browser, browser.request(action, { form: { ...fields, decision: 'accept' } }));
      return ['consents'];
    },
  };
  const idOf = async (email: string) => (await world.server.users.withEmail(email))[0]?.id ?? '';
  const ticketOf = async (path: string, email: string) =>
    world.admin('POST', path, { user_id: await idOf(email) });
  const pathOf = (link: string) => {
    const { pathname, search } = new URL(link);
    return pathname + search;
  };
  for (const [key, change] of Object.entries(WITH_PROOF))
    it(`makes the change with its proof: ${key}`, async () => {
      const email = await world.someone();
      const id = await idOf(email);
      const before = await stateOf(id);
      const changed = await change(email);
      const after = await stateOf(id);
      const different = Object.keys(after).filter(
        (name) => JSON.stringify(after[name]) !== JSON.stringify(before[name]),
      );
      expect(different.sort()).to.deep.equal(changed);
    });

  it('does not restart the waiting request of another browser', async () => {
    const other = await waiting();
    const { browser } = await byPage(world, await world.someone());
    const answer = await answerOf(browser, browser.get(`/authorize?state=gatehouse.waiting.${other.uid}`));
    expect(answer.status, answer.text).to.equal(400);
  });
});
