// Linking a second account at /account. Both accounts are proved by a recent login.
import { expect } from 'chai';
import { codeOf, factors } from '../factors/tenant.ts';
import { callsWith, managementToken, startManaged } from '../management/support.ts';
import { type Agent, type Answer, createAgent, readForm } from '../support/agent.ts';
import { databaseUser } from '../support/database-user.ts';
import { follow, submitLogin, tenant } from '../support/flows.ts';
import { heldStore } from '../support/held-store.ts';
import { messagesTo, nextMessageTo } from '../support/inbox.ts';
import { resetPassword } from '../support/reset.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { formOf, openAccount, send } from './support.ts';

const PAGE = '/account/applications';
const LINK = `${PAGE}/link`;
const PASSWORD = 'Another-Horse-2';
const TOTP = 'JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP';

describe('linking accounts at the account page', () => {
  let server: TestServer;
  let agent: Agent;
  let people = 0;
  let other: { email: string; password: string };
  let first: { email: string; password: string };
  const held = heldStore();
  before(async () => {
    server = await startManaged(
      {
        ...tenant,
        tenant: { ...tenant.tenant, account_linking: 'suggest', account_page: { client_id: 'web' } },
        guardianFactors: factors('otp'),
      },
      undefined,
      {},
      { open: held.open },
    );
  });
  after(() => server.stop());
  const make = async (email: string) => {
    const created = await server.users.create(
      databaseUser({ connection: 'users', email, password: PASSWORD }),
    );
    if (!('user' in created)) throw new Error('the address is taken');
    await server.users.update(created.user.id, { email_verified: true });
    return { email, password: PASSWORD };
  };
  beforeEach(async () => {
    agent = createAgent(server);
    people += 1;
    first = await make(`stays-${people}@example.test`);
    other = await make(`goes-${people}@example.test`);
  });

  const userOf = async (email: string) => (await server.users.withEmail(email))[0];
  const begin = async () => {
    const page = await openAccount(agent, server, PAGE, first);
    return follow(agent, await send(agent, page, LINK), server.url);
  };
  const prove = async (user = other, login?: Answer) =>
    submitLogin(agent, server, login ?? (await begin()), user);
  const confirm = (page: Answer, more = {}) => send(agent, page, `${LINK}/confirm`, more);
  const isOne = async () => (await userOf(other.email)) === undefined;
  const enroll = async ({ email }: { email: string }) => {
    const call = callsWith(server, await managementToken(server));
    const path = `/users/${encodeURIComponent(String((await userOf(email))?.id))}/authentication-methods`;
    const added = await call('POST', path, { type: 'totp', name: 'An app', totp_secret: TOTP });
    expect(added.status, added.text).to.equal(201);
  };

  it('makes the second account an identity of the first, tells both by mail, and logs it', async () => {
    const goes = await userOf(other.email);
    const seen = await prove();
    expect(seen.status, seen.text).to.equal(200);
    expect(seen.text).to.contain(first.email).and.contain(other.email);
    expect(await isOne(), 'before it is confirmed').to.equal(false);
    const done = await confirm(seen);
    expect(done.status, done.text).to.equal(200);
    const stays = await userOf(first.email);
    const identities = await server.users.identitiesOf(String(stays?.id));
    expect(identities.map(({ email }) => email)).to.have.members([first.email, other.email]);
    for (const { email } of [first, other])
      expect((await nextMessageTo(server, email)).text, email).to.contain('another account linked');
    const { records } = await server.store
      .collection('logs')
      .list({ where: { field: 'user_id', equals: String(stays?.id) } });
    expect(records.find(({ type }) => type === 'account_linked')).to.include({ description: goes?.id });
    const page = await openAccount(createAgent(server), server, '/account', other);
    expect(page.text).to.contain(first.email);
    const again = await confirm(seen);
    expect(again.status, 'once').to.equal(400);
  });

  it('links nothing without a login to the second account, for the same account, or after ten minutes', async () => {
    const login = await begin();
    expect(login.text).to.contain('name="password"');
    const same = await prove(first, login);
    expect(same.status).to.equal(400);
    expect(same.text).to.contain('Nothing was linked');
    const seen = await prove();
    server.tick(11 * 60_000);
    expect((await confirm(seen)).status).to.equal(400);
    expect(await isOne()).to.equal(false);
  });

  it('requires a fresh login to begin, and the form of the page', async () => {
    const page = await openAccount(agent, server, PAGE, first);
    const plain = { ...formOf(page, LINK), _csrf: 'x' };
    expect((await agent.request(LINK, { form: plain })).status).to.equal(403);
    server.tick(11 * 60_000);
    const login = await follow(agent, await send(agent, page, LINK), server.url);
    const back = await submitLogin(agent, server, login, first);
    expect(back.text, 'it is begun again').to.contain('Link another account');
  });

  it('requires the form of the same browser, and both accounts unchanged', async () => {
    const seen = await prove();
    const thief = createAgent(server);
    const fields = formOf(seen, `${LINK}/confirm`);
    expect((await thief.request(`${LINK}/confirm`, { form: fields })).status).to.equal(403);
    expect((await confirm(seen, { ticket: 'guessed' })).status).to.equal(400);
    await server.users.setPassword(String((await userOf(first.email))?.id), 'Third-Horse-3');
    expect((await confirm(seen)).status, 'a new password').to.equal(400);
    expect(await isOne()).to.equal(false);
  });

  it('does not link an account whose user was blocked meanwhile', async () => {
    const seen = await prove();
    await server.users.update(String((await userOf(other.email))?.id), { blocked: true });
    expect((await confirm(seen)).status).to.equal(400);
    expect(await isOne()).to.equal(false);
  });

  it('does not link an account whose login has ended meanwhile', async () => {
    const seen = await prove();
    await agent.get('/v2/logout');
    expect((await confirm(seen)).status).to.equal(400);
    expect(await isOne()).to.equal(false);
  });

  it('does not link when the first session ended before the second account was proved, in any browser', async () => {
    const page = await openAccount(agent, server, PAGE, first);
    const away = await send(agent, page, LINK);
    await agent.get('/v2/logout');
    const seen = await prove(other, await follow(agent, away, server.url));
    expect(seen.status).to.equal(400);
    expect(seen.text).to.contain('Nothing was linked');
    expect(await isOne()).to.equal(false);
  });

  it('does not link an account with an unverified address, whose owner would gain access to the other account', async () => {
    const unproved = async ({ email }: { email: string }) =>
      server.users.update(String((await userOf(email))?.id), { email_verified: false });
    await unproved(other);
    const refused = await prove();
    expect(refused.status).to.equal(400);
    expect(refused.text).to.contain('not verified');
    const stays = await openAccount(createAgent(server), server, PAGE, other);
    expect(stays.text).not.to.contain(LINK);
    await server.users.update(String((await userOf(other.email))?.id), { email_verified: true });
    agent = createAgent(server);
    const seen = await prove();
    await unproved(first);
    expect((await confirm(seen)).status, 'meanwhile').to.equal(400);
    expect(await isOne()).to.equal(false);
    await resetPassword(server, first.email, 'Third-Horse-3');
    const identities = await server.users.identitiesOf(String((await userOf(first.email))?.id));
    expect(identities.map(({ email }) => email)).to.deep.equal([first.email]);
  });

  it('does not take a second factor away: the first account must have one, too', async () => {
    await enroll(other);
    const page = await prove();
    const { action, fields } = readForm(page, 'code');
    const given = await agent.request(action, { form: { ...fields, code: codeOf(TOTP) } });
    const shown = await follow(agent, given, server.url);
    expect(shown.status, shown.text).to.equal(400);
    expect(shown.text).to.contain('a second step that the first account lacks');
    expect(await isOne()).to.equal(false);
  });

  /** What happens between the judgement of a link and its write. */
  const MEANWHILE: Record<string, () => Promise<unknown>> = {
    'the second account enrolled a factor': () => enroll(other),
    'the first account was blocked': async () =>
      server.users.update(String((await userOf(first.email))?.id), { blocked: true }),
    'the second account was blocked': async () =>
      server.users.update(String((await userOf(other.email))?.id), { blocked: true }),
    'the first account got a new password': async () =>
      server.users.setPassword(String((await userOf(first.email))?.id), 'Third-Horse-3'),
    'all sessions were ended': async () => {
      const call = callsWith(server, await managementToken(server));
      const id = encodeURIComponent(String((await userOf(other.email))?.id));
      expect((await call('POST', `/users/${id}/revoke-access`, {})).status).to.equal(202);
    },
    'the logins became older than ten minutes': async () => server.tick(11 * 60_000),
  };
  for (const [what, meanwhile] of Object.entries(MEANWHILE))
    it(`links nothing if right before the write ${what}`, async () => {
      const seen = await prove();
      held.beforeBatch((write) => write.collection === 'users' && 'delete' in write, meanwhile);
      const answer = await confirm(seen);
      expect(answer.status, answer.text).to.equal(400);
      expect(await isOne()).to.equal(false);
    });

  it('links once for concurrent confirmations', async () => {
    const seen = await prove();
    const all = await Promise.all([1, 2, 3].map(() => confirm(seen)));
    expect(all.map(({ status }) => status).sort()).to.deep.equal([200, 400, 400]);
    await nextMessageTo(server, other.email);
    expect(await messagesTo(server, other.email)).to.have.length(1);
  });

  it('is not offered and not accepted when the tenant does not allow it', async () => {
    const own = await startServer({
      tenant: { ...tenant, tenant: { ...tenant.tenant, account_page: { client_id: 'web' } } },
    });
    try {
      const browser = createAgent(own);
      const page = await openAccount(browser, own, PAGE);
      expect(page.text).not.to.contain(LINK);
      const form = formOf(await browser.get('/account'), '/account');
      const { _csrf = '', account = '' } = form;
      const answer = await browser.request(LINK, { form: { _csrf, account } });
      expect([answer.status, new URL(answer.location).pathname]).to.deep.equal([303, PAGE]);
    } finally {
      await own.stop();
    }
  });
});
