// The phone number of the user's own account, which is only set by a code that was sent to it.
import { expect } from 'chai';
import { factors } from '../factors/tenant.ts';
import { type Agent, type Answer, createAgent } from '../support/agent.ts';
import { databaseUser } from '../support/database-user.ts';
import { follow, USER } from '../support/flows.ts';
import { nextMessageTo } from '../support/inbox.ts';
import { prepareReset } from '../support/reset.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { formOf, openAccount, send } from './support.ts';
import { tenant } from './tenant.ts';

const PHONE = '+442079460011';

describe('the phone number at the account page', () => {
  let server: TestServer;
  let agent: Agent;
  beforeEach(async () => {
    server = await startServer({
      tenant: {
        ...tenant,
        tenant: { ...tenant.tenant, account_page: { client_id: 'web' } },
        guardianFactors: factors('sms'),
        users: tenant.users.map((one) => (one.email === USER.email ? { ...one, email_verified: true } : one)),
      },
    });
    agent = createAgent(server);
  });
  afterEach(() => server.stop());

  const user = async () => (await server.users.withEmail(USER.email))[0];
  const ask = async (phone = PHONE): Promise<Answer> =>
    send(agent, await openAccount(agent, server), '/account/profile/phone', { phone });
  const codeTo = async (phone = PHONE) => (await nextMessageTo(server, phone)).code ?? '';
  const prove = (page: Answer, code: string) => send(agent, page, '/account/profile/phone/code', { code });
  const other = (code: string) => (code === '000000' ? '000001' : '000000');

  it('is set by the code that was sent to it, and the user is told by mail', async () => {
    const page = await ask('+44 20 7946 0011');
    expect((await user())?.phone_number).to.equal(undefined);
    const done = await follow(agent, await prove(page, await codeTo()), server.url);
    expect(done.text).to.include('Saved.').and.to.include(PHONE);
    expect(await user()).to.include({ phone_number: PHONE, phone_verified: true });
    const isTold = ({ subject }: { subject?: string }) => subject?.includes('new phone number') === true;
    expect((await nextMessageTo(server, USER.email, 1, isTold)).subject).to.be.a('string');
  });

  it('is not set by a code that is wrong, used, expired, or was sent to another number', async () => {
    const page = await ask();
    const code = await codeTo();
    expect((await prove(page, other(code))).status).to.equal(400);
    // The number in the form is only shown, and not used.
    const lied = await send(agent, page, '/account/profile/phone/code', { code, phone: '+442079460099' });
    expect(lied.status).to.equal(303);
    expect((await user())?.phone_number).to.equal(PHONE);
    expect((await prove(page, code)).status).to.equal(400);
    const next = await ask('+442079460012');
    const late = await codeTo('+442079460012');
    server.tick(301_000);
    expect((await prove(next, late)).status).to.equal(400);
    expect((await user())?.phone_number).to.equal(PHONE);
  });

  it('is not set when another account has it, which is only told after the number was proved', async () => {
    const created = await server.users.create(
      databaseUser({
        connection: 'users',
        email: 'first@example.test',
        phone_number: PHONE,
        password: USER.password,
      }),
    );
    expect(created).to.have.property('user');
    const page = await ask();
    expect(page.text).to.not.include('another account');
    const code = await codeTo();
    expect((await prove(page, other(code))).text).to.not.include('another account');
    const refused = await prove(page, code);
    expect(refused.status).to.equal(400);
    expect(refused.text).to.include('This number belongs to another account.');
    expect((await user())?.phone_number).to.equal(undefined);
  });

  it('is only set in the session that asked for the code', async () => {
    const page = await ask();
    const code = await codeTo();
    const elsewhere = createAgent(server);
    const fields = formOf(await openAccount(elsewhere, server), '/account/profile/phone');
    const form = { ...fields, phone: PHONE, code };
    const taken = await elsewhere.request('/account/profile/phone/code', { form });
    expect(taken.status).to.equal(400);
    expect((await user())?.phone_number).to.equal(undefined);
    expect((await prove(page, code)).status, 'nor does it use the code up').to.equal(303);
  });

  it('ends its code with the third wrong try', async () => {
    const page = await ask();
    const code = await codeTo();
    for (let i = 0; i < 3; i++) expect((await prove(page, other(code))).status).to.equal(400);
    expect((await prove(page, code)).status).to.equal(400);
    expect((await user())?.phone_number).to.equal(undefined);
  });

  it('is set once for concurrent forms', async () => {
    const page = await ask();
    const code = await codeTo();
    const answers = await Promise.all(Array.from({ length: 5 }, () => prove(page, code)));
    expect(answers.filter(({ status }) => status === 303)).to.have.length(1);
  });

  it('is not verified beside a new password that the owner of the address sets', async () => {
    for (let round = 0; round < 6; round++) {
      const [email, phone] = [`mfa-${round}@example.test`, `+44207946010${round}`];
      const maker = createAgent(server);
      const home = await openAccount(maker, server, '/account', { email, password: USER.password });
      const page = await send(maker, home, '/account/profile/phone', { phone });
      const code = await codeTo(phone);
      const reset = await prepareReset(server, email);
      const set = () => send(maker, page, '/account/profile/phone/code', { code });
      const own = () => reset(`Owner-Horse-${round}`);
      const [one, two] = round % 2 === 0 ? [set, own] : [own, set];
      await Promise.all([one(), two()]);
      const [after] = await server.users.withEmail(email);
      expect(after).to.include({ email_verified: true });
      expect(after?.phone_verified ?? false, `round ${round}`).to.equal(false);
    }
  });

  it('requires a fresh login to ask for the code and to enter it', async () => {
    const page = await ask();
    const code = await codeTo();
    const home = await openAccount(agent, server);
    server.tick(11 * 60_000);
    for (const answer of [
      await send(agent, home, '/account/profile/phone', { phone: PHONE }),
      await prove(page, code),
    ])
      expect(answer.location).to.include('prompt=login');
    expect((await user())?.phone_number).to.equal(undefined);
  });

  it('is rejected when it is invalid, and limited to five codes', async () => {
    for (const wrong of ['', 'x', '12', '020 7946 0011'])
      expect((await ask(wrong)).status, wrong).to.equal(400);
    const statuses = [];
    for (let i = 20; i < 26; i++) statuses.push((await ask(`+4420794600${i}`)).status);
    expect(statuses).to.deep.equal([200, 200, 200, 200, 200, 429]);
  });

  it('is offered when users log in with codes sent to their numbers, whatever the factors', async () => {
    const identifier = { identifier: { active: true }, signup: { status: 'optional' } };
    const attributes = { email: identifier, phone_number: identifier };
    const authentication_methods = { phone_otp: { enabled: true } };
    const other = await startServer({
      tenant: {
        ...tenant,
        tenant: { ...tenant.tenant, account_page: { client_id: 'web' } },
        databases: tenant.databases.map((one) =>
          one.name === 'users' ? { ...one, options: { attributes, authentication_methods } } : one,
        ),
        connections: [],
        guardianFactors: [],
      },
    });
    try {
      const home = await openAccount(createAgent(other), other);
      expect(home.text).to.include('/account/profile/phone');
    } finally {
      await other.stop();
    }
  });
});
