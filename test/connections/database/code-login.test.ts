// `authentication_methods` of a database connection on the hosted pages: codes beside or instead of passwords.
import { expect } from 'chai';
import { send } from '../../account/support.ts';
import { callApi, startManaged } from '../../management/support.ts';
import { type Answer, createAgent, readForm } from '../../support/agent.ts';
import { databaseUser } from '../../support/database-user.ts';
import { follow, responseOf } from '../../support/flows.ts';
import { messagesTo, nextMessageTo } from '../../support/inbox.ts';
import { resetPassword } from '../../support/reset.ts';
import type { TestServer } from '../../support/server.ts';
import { openPage, withDatabases } from './support.ts';

const email = { identifier: { active: true }, signup: { status: 'optional' } };
const phone_number = { identifier: { active: true }, signup: { status: 'optional' } };
const codes = { email_otp: { enabled: true }, phone_otp: { enabled: true } };
const first = { active: true, default_method: 'email_otp' };

const DATABASES = {
  beside: { attributes: { email, phone_number }, authentication_methods: codes },
  first: { attributes: { email: { ...email, identifier: first } }, authentication_methods: codes },
  needed: {
    attributes: {
      phone_number: { ...phone_number, profile_required: true, signup: { status: 'required' } },
      email: { signup: { status: 'optional' } },
    },
  },
  short: {
    attributes: {
      username: { ...email, validation: { min_length: 3, max_length: 14, allowed_types: { email: true } } },
      phone_number,
    },
  },
  older: { requires_username: true, validation: { username: { min: 3, max: 14 } } },
  lax: { attributes: { username: { ...email, validation: { max_length: 50 } } } },
  alone: {
    attributes: { email, phone_number },
    authentication_methods: { ...codes, password: { enabled: false, api_behavior: 'optional' } },
  },
};
type Name = keyof typeof DATABASES;
const PASSWORD = 'A-good-Passw0rd';

describe('a database connection with codes', () => {
  let server: TestServer;
  before(async () => {
    const liftedLimits = [
      'signup',
      'hosted',
      'passwordlessStart',
      'passwordlessDestination',
      'passwordlessResend',
    ];
    server = await startManaged(withDatabases(DATABASES, { liftedLimits, attempts: 100 }));
  });
  after(() => server.stop());

  let people = 0;
  const someone = async (connection: Name, verified = true) => {
    const n = ++people;
    const typed = { email: `code-login-${n}@example.test`, phone_number: `+1415555${4000 + n}` };
    const profile = { email_verified: verified, phone_verified: verified };
    const created = await server.users.create(
      databaseUser({ connection, ...typed, password: PASSWORD, profile }),
    );
    if (!('user' in created)) throw new Error('taken');
    return typed;
  };
  const open = (connection: Name, over: object = {}) => openPage(server, { connection, ...over });
  const pathTo = (page: Answer, way: string) =>
    new RegExp(`href="([^"]*/${way})"`).exec(page.text)?.[1] ?? '';

  for (const [channel, kind] of [
    ['email', 'email'],
    ['sms', 'phone_number'],
  ] as const) {
    it(`logs in a user with a password by a code, too: ${channel}`, async () => {
      const user = await someone('beside');
      const { agent, page, submit } = await open('beside');
      const addressPage = await agent.get(pathTo(page, `code/beside/${channel}`));
      const codePage = await submit(addressPage, 'address', { address: user[kind] });
      const { code = '' } = await nextMessageTo(server, user[kind]);
      const wrong = await submit(codePage, 'code', { code: code === '123456' ? '654321' : '123456' });
      expect(wrong.status).to.equal(400);
      expect(responseOf(await submit(wrong, 'code', { code }))).to.have.property('code');
    });
  }

  it('shows the same page for an unknown address and an unverified one, and sends nothing to either', async () => {
    const unproved = await someone('beside', false);
    const pages = await Promise.all(
      [(await someone('beside')).email, 'nobody-here@example.test', unproved.email].map(async (address) => {
        const { agent, page, submit } = await open('beside');
        const codePage = await submit(await agent.get(pathTo(page, 'code/beside/email')), 'address', {
          address,
        });
        const { text } = await submit(codePage, 'code', { code: '000000' });
        return text.replaceAll(address, '…').replace(/nonce="[^"]*"|value="[^"]*"|\/u\/[\w-]+/g, '');
      }),
    );
    expect(new Set(pages).size).to.equal(1);
    expect(await messagesTo(server, 'nobody-here@example.test')).to.deep.equal([]);
    expect(await messagesTo(server, unproved.email)).to.deep.equal([]);
  });

  it('accepts a code only in the browser that requested it', async () => {
    const { email: address } = await someone('beside');
    const mine = await open('beside');
    await mine.submit(await mine.agent.get(pathTo(mine.page, 'code/beside/email')), 'address', { address });
    const { code = '' } = await nextMessageTo(server, address);
    const theirs = await open('beside');
    const addressPage = await theirs.agent.get(pathTo(theirs.page, 'code/beside/email'));
    const codePage = await theirs.submit(addressPage, 'address', { address: 'nobody-there@example.test' });
    expect((await theirs.submit(codePage, 'code', { address, code })).status).to.equal(400);
  });

  it('removes the phone number of an account when the owner of its e-mail address resets the password', async () => {
    const [unverified, own] = [await someone('beside'), await someone('beside')];
    const idOf = async (user: { email: string }) =>
      (await server.users.findInConnection({ name: 'beside' }, user.email))?.id ?? '';
    await server.users.update(await idOf(unverified), { email_verified: false });
    for (const user of [unverified, own])
      await resetPassword(server, user.email, 'An0ther-Passw0rd', 'beside');
    expect(await server.users.get(await idOf(unverified))).to.include({
      email_verified: true,
      phone_verified: false,
    });
    expect(await server.users.get(await idOf(own))).to.include({
      email_verified: true,
      phone_verified: true,
    });
    const { agent, page, submit } = await open('beside');
    for (const { phone_number: address } of [unverified, own])
      await submit(await agent.get(pathTo(page, 'code/beside/sms')), 'address', { address });
    await nextMessageTo(server, own.phone_number);
    expect(await messagesTo(server, unverified.phone_number)).to.deep.equal([]);
  });

  it('asks for a code first if default_method says so, and offers the password', async () => {
    const user = await someone('first');
    const { agent, page, submit } = await open('first', { login_hint: user.email });
    expect(page.text).to.include('Get a code by email').and.include(user.email);
    const form = await agent.get(pathTo(page, 'login'));
    const end = await submit(form, 'password', { username: user.email, password: PASSWORD });
    expect(responseOf(end)).to.have.property('code');
  });

  describe('of a user who has only a phone number', () => {
    it('logs in by a code, and by a password that the user sets at the account page', async () => {
      const number = '+14155554951';
      const created = await server.users.create({
        identity: {
          connection: 'beside',
          provider: 'auth0',
          addresses: { phone_number: number },
          unique: ['phone_number'],
        },
        profile: { phone_verified: true },
      });
      if (!('user' in created)) throw new Error('taken');
      const { agent, page, submit } = await open('beside');
      const codePage = await submit(await agent.get(pathTo(page, 'code/beside/sms')), 'address', {
        address: number,
      });
      const { code } = await nextMessageTo(server, number);
      expect(responseOf(await submit(codePage, 'code', { code }))).to.have.property('code');
      const security = await follow(agent, await agent.get('/account/security'), server.url);
      const link = await send(agent, security, '/account/security/password');
      const form = await follow(agent, link, server.url);
      const password = 'Brand-New-Horse-9';
      const { action, fields } = readForm(form, 'password');
      const done = await agent.request(action, { form: { ...fields, password, repeat: password } });
      expect(done.status, done.text).to.be.below(400);
      expect(await server.users.verifyPassword(created.user.id, password)).to.be.a('number');
      const again = await open('beside');
      const end = await again.submit(again.page, 'password', { username: number, password });
      expect(responseOf(end)).to.have.property('code');
    });

    it('answers a password reset as for an unknown user', async () => {
      const [known, unknown] = ['+14155554952', '+14155554953'];
      await server.users.create(
        databaseUser({ connection: 'beside', phone_number: known, password: PASSWORD }),
      );
      const pages = await Promise.all(
        [known, unknown].map(async (name) => {
          const { agent, page, submit } = await open('beside');
          const forgot = await agent.get(pathTo(page, 'forgot-password'));
          const { status, text } = await submit(forgot, 'email', { email: name });
          const plain = text.replaceAll(name, '…').replace(/nonce="[^"]*"|value="[^"]*"|\/u\/[\w-]+/g, '');
          return `${status} ${plain}`;
        }),
      );
      expect(pages[0]).to.match(/^200 /);
      expect(pages[0]).to.equal(pages[1]);
      expect(await messagesTo(server, known)).to.deep.equal([]);
    });
  });

  describe('without passwords', () => {
    const logIn = (username: string, password: string) =>
      createAgent(server).request('/oauth/token', {
        json: {
          grant_type: 'http://auth0.com/oauth/grant-type/password-realm',
          client_id: 'web',
          client_secret: 'web-secret',
          realm: 'alone',
          ...{ username, password },
        },
      });

    it('rejects every password, a right one with the same answer as a wrong one', async () => {
      const user = await someone('alone');
      const [right, wrong] = await Promise.all([logIn(user.email, PASSWORD), logIn(user.email, 'wrong')]);
      expect([right.status, right.text]).to.deep.equal([wrong.status, wrong.text]);
      expect(right.status).to.equal(403);
    });

    it('shows no password form, sends no reset link, and sets no password', async () => {
      const user = await someone('alone');
      const { agent, page } = await open('alone');
      expect(page.text).to.include('Get a code by email').and.not.include('type="password"');
      const { uid } = /\/u\/(?<uid>[\w-]+)\//.exec(page.text)?.groups ?? {};
      const login = await follow(agent, await agent.get(`/u/${uid}/login`), server.url);
      expect(login.text).not.to.include('type="password"');
      await createAgent(server).request('/dbconnections/change_password', {
        json: { client_id: 'web', connection: 'alone', email: user.email },
      });
      const { id } = (await server.users.findInConnection({ name: 'alone' }, user.email)) ?? {};
      expect(
        (await callApi(server, 'PATCH', `/users/${id}`, { password: 'Another-Passw0rd' })).status,
      ).to.equal(400);
      expect(await messagesTo(server, user.email)).to.deep.equal([]);
    });

    it('rejects a reset link that was sent before passwords were switched off', async () => {
      const created = await callApi(server, 'POST', '/connections', {
        name: 'switched',
        strategy: 'auth0',
        options: { authentication_methods: { email_otp: { enabled: true } } },
      });
      const { id: connection } = (await created.json()) as { id: string };
      const address = { email: 'switched@example.test', password: PASSWORD };
      const user = await callApi(server, 'POST', '/users', { connection: 'switched', ...address });
      const { user_id } = (await user.json()) as { user_id: string };
      const answer = await callApi(server, 'POST', '/tickets/password-change', { user_id });
      const { ticket } = (await answer.json()) as { ticket: string };
      expect((await createAgent(server).get(ticket.replace('#', ''))).status).to.equal(200);
      const off = { email_otp: { enabled: true }, password: { enabled: false } };
      await callApi(server, 'PATCH', `/connections/${connection}`, {
        options: { authentication_methods: off },
      });
      expect((await createAgent(server).get(ticket.replace('#', ''))).status).to.equal(400);
    });

    it('signs up a user by a code on the hosted page', async () => {
      const typed = 'no-password@example.test';
      const { page, submit } = await open('alone', { screen_hint: 'signup' });
      expect(page.text).not.to.include('type="password"');
      const addressPage = await submit(page, 'email', { email: typed });
      const { code } = await nextMessageTo(server, typed, 1, 'code');
      expect(responseOf(await submit(addressPage, 'code', { code }))).to.have.property('code');
      const user = await server.users.findInConnection({ name: 'alone' }, typed);
      expect(user).to.include({ email_verified: true });
    });

    it('creates users without a password by the APIs if api_behavior says so, and rejects a password', async () => {
      const signUp = (connection: Name, fields: object) =>
        createAgent(server).request('/dbconnections/signup', {
          json: { client_id: 'web', connection, ...fields },
        });
      expect((await signUp('alone', { email: 'api-1@example.test' })).status).to.equal(200);
      expect(
        (await signUp('alone', { email: 'api-2@example.test', password: PASSWORD })).json(),
      ).to.deep.equal({
        error: 'public signup is disabled',
        error_description: 'public signup is disabled',
      });
      expect((await signUp('beside', { email: 'api-3@example.test' })).json()).to.deep.equal({
        error: 'password is required',
        error_description: 'password is required',
      });
      const create = async (connection: Name) =>
        (await callApi(server, 'POST', '/users', { connection, email: 'api-4@example.test' })).status;
      expect([await create('alone'), await create('beside')]).to.deep.equal([201, 400]);
    });
  });

  it('requires of users of the Management API the addresses that it requires, and keeps each phone number unique', async () => {
    const users = async (method: string, path: string, body: object) => {
      const answer = await callApi(server, method, `/users${path}`, body);
      const { user_id: id, message } = (await answer.json()) as { user_id: string; message?: string };
      return { status: answer.status, id, message };
    };
    const of = (phone?: string) => ({ connection: 'needed', password: PASSWORD, phone_number: phone });
    const created = await users('POST', '', of('+14155554801'));
    expect(created.status).to.equal(201);
    expect((await users('POST', '', of('+14155554801'))).status).to.equal(409);
    const nameless = await users('POST', '', { ...of(), email: 'needed@example.test' });
    expect(nameless.message).to.include("'Missing required property: phone_number'");
    const other = await users('POST', '', of('+14155554802'));
    const refusedUpdate = await users('PATCH', `/${other.id}`, { phone_number: '+14155554801' });
    expect(refusedUpdate).to.include({
      status: 400,
      message: 'The specified new phone number already exists',
    });
    await users('PATCH', `/${other.id}`, { phone_verified: true });
    await users('PATCH', `/${other.id}`, { phone_number: '+1 415 555 4802' });
    expect(await server.users.get(other.id), 'the same number').to.include({ phone_verified: true });
    await users('PATCH', `/${other.id}`, { phone_number: '+14155554803' });
    expect(await server.users.get(other.id), 'a new one').to.include({ phone_verified: false });
  });

  describe('checks usernames of the Management API', () => {
    const users = async (method: string, path: string, body: object) => {
      const answer = await callApi(server, method, `/users${path}`, body);
      return { status: answer.status, body: (await answer.json()) as Record<string, string> };
    };
    const FOREIGN = ['ab', 'longer-than-14c', 'two words', 'owner@x.test'];

    for (const [connection, foreign] of [
      ['short', [...FOREIGN.slice(0, 3), '+14155554901']],
      ['older', FOREIGN],
    ] as const)
      it(`by the rules of a sign-up, for a new user and for a change: ${connection}`, async () => {
        const mail = connection === 'older' ? { email: 'named@example.test' } : {};
        const of = (username: string) => ({ connection, ...mail, username, password: PASSWORD });
        const created = await users('POST', '', of('short-enough'));
        expect(created.status, JSON.stringify(created.body)).to.equal(201);
        for (const username of foreign) {
          for (const refused of [
            await users('POST', '', of(username)),
            await users('PATCH', `/${created.body.user_id}`, { username }),
          ]) {
            expect(refused.body, username).to.include({ statusCode: 400, errorCode: 'invalid_body' });
            expect(refused.body.message).to.include("Payload validation error: 'username: 3 to 14 letters");
          }
        }
        const changed = await users('PATCH', `/${created.body.user_id}`, { username: 'Another-One' });
        expect([changed.status, changed.body.username]).to.deep.equal([200, 'another-one']);
      });

    it("but keeps an older name, and applies the rules of a linked account's own connection", async () => {
      const typed = { connection: 'lax', username: 'a-name-of-before-x', password: PASSWORD };
      const second = await users('POST', '', typed);
      const linked = await users('POST', '', { ...typed, username: 'named-first', connection: 'short' });
      const id = linked.body.user_id ?? '';
      await callApi(server, 'POST', `/users/${id}/identities`, {
        provider: 'auth0',
        user_id: second.body.user_id,
      });
      const other = { connection: 'lax', username: 'longer-than-fourteen' };
      const changed = await users('PATCH', `/${id}`, other);
      expect([changed.status, changed.body.username]).to.deep.equal([200, 'named-first']);
      expect((await users('PATCH', `/${id}`, { username: other.username })).status).to.equal(400);
      await server.users.update(id, { username: 'longer-than-before' });
      const same = await users('PATCH', `/${id}`, { username: 'longer-than-before', given_name: 'Ada' });
      expect([same.status, same.body.given_name]).to.deep.equal([200, 'Ada']);
    });

    it('and rejects them if the connection has none', async () => {
      const { body: created } = await users('POST', '', {
        connection: 'beside',
        email: 'n@example.test',
        password: PASSWORD,
      });
      const { body } = await users('PATCH', `/${created.user_id}`, { username: 'somebody' });
      expect(body.message).to.equal('Cannot set username for connection without requires_username');
    });
  });

  it('is rejected by the Management API without any authentication method, or with one name for two', async () => {
    const create = async (options: object) => {
      const answer = await callApi(server, 'POST', '/connections', {
        name: 'refused',
        strategy: 'auth0',
        options,
      });
      return [answer.status, ((await answer.json()) as { message: string }).message];
    };
    const off = { password: { enabled: false } };
    const only = 'authentication_methods.password can be disabled with email_otp or phone_otp alone';
    expect(await create({ authentication_methods: off })).to.deep.equal([400, only]);
    const phoneless = { ...off, phone_otp: { enabled: true } };
    expect(await create({ authentication_methods: phoneless })).to.deep.equal([400, only]);
    expect(
      await create({ attributes: { email: { identifier: { active: true }, unique: false } } }),
    ).to.deep.equal([400, 'attribute email must be unique to be an identifier']);
    const faulty = { attributes: { email: { identifier: { active: true }, signup: { status: 'maybe' } } } };
    expect((await create(faulty))[0]).to.equal(400);
  });
});
