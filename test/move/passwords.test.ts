// The bridge of passwords: users log in here with their password of the old tenant, once verified there.
import { expect } from 'chai';
import { MOVE } from '../../src/records/tenant/move.ts';
import { REALM_GRANT } from '../factors/tenant.ts';
import { type Answer, createAgent } from '../support/agent.ts';
import { runCommand } from '../support/command.ts';
import { databaseUser } from '../support/database-user.ts';
import { tenant as base, logIn, responseOf, WEB_CALLBACK, webRequest } from '../support/flows.ts';
import { messagesTo } from '../support/inbox.ts';
import { resetPassword } from '../support/reset.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { tenantWith } from '../support/tenant.ts';
import {
  answering,
  broken,
  changing,
  huge,
  type Instead,
  MOVE_CLIENT,
  OLD,
  redirecting,
  type StandIn,
  silent,
  slow,
  startStandIn,
} from './stand-in.ts';

const DAY = 86_400_000;
const generous = { capacity: 10_000, perMinute: 10_000 };
const tenant = tenantWith({
  attackProtection: {
    rateLimits: { ...base.attackProtection.rateLimits, signup: generous, customDatabase: generous },
  },
  guardianFactors: [
    { name: 'otp', enabled: true },
    { name: 'sms', enabled: true },
  ],
  add: {
    connections: [
      {
        name: 'google-oauth2',
        strategy: 'google-oauth2',
        options: { client_id: 'here', client_secret: 'secret-here' },
        enabled_clients: ['web'],
      },
    ],
  },
  change: { web: { cross_origin_authentication: true, web_origins: [new URL(WEB_CALLBACK).origin] } },
});

interface Person {
  email: string;
  password: string;
}

describe('passwords of the old tenant', () => {
  let old: StandIn;
  let server: TestServer;
  before(async () => {
    old = await startStandIn();
    server = await startServer({ tenant });
    await open();
    await run('move', 'trickle', 'users');
  });
  after(async () => {
    await server.stop();
    await old.stop();
  });
  afterEach(() => old.reset());

  const run = async (...args: string[]) => {
    const env = { DATA_DIR: server.dataDir, MOVE_CLIENT_SECRET: MOVE_CLIENT.client_secret };
    const { code, stdout, stderr } = await runCommand({ cwd: server.dataDir, env, args });
    if (code !== 0) throw new Error(stderr);
    return stdout;
  };
  const open = (until = '2027-03-31') =>
    run('move', 'open', '--tenant', old.origin, '--client-id', MOVE_CLIENT.client_id, '--until', until);
  const state = async () => JSON.parse(await run('move', 'status', '--json')).bridges[0];
  const token = (form: Record<string, string>): Promise<Answer> =>
    createAgent(server).request('/oauth/token', {
      form: { client_id: 'web', client_secret: 'web-secret', scope: 'openid profile', ...form },
    });
  const login = ({ email, password }: Person) =>
    token({ grant_type: REALM_GRANT, realm: 'users', username: email, password });
  const subOf = (answer: Answer) =>
    JSON.parse(Buffer.from(answer.json().id_token.split('.')[1], 'base64url').toString()).sub;
  const isHere = async (email: string) => (await server.users.withEmail(email)).length > 0;
  const eventsOf = async (email: string, type: string) => {
    const { records } = await server.store.collection('logs').list({ limit: 1000 });
    return records.filter((one) => one.user_name === email && one.type === type);
  };
  const WRONG = { error: 'invalid_grant', error_description: 'Wrong email or password.' };
  /** Expects that nobody was let in, and that the answer is that for a wrong password. */
  const expectRefused = async (answer: Answer, { email }: Person) => {
    expect(answer.status, answer.text).to.equal(403);
    expect(answer.json()).to.deep.equal(WRONG);
    expect(await isHere(email)).to.equal(false);
  };

  it('log the user in under the same id, and are not asked for again', async () => {
    for (const person of [OLD.bcrypt, OLD.argon2, OLD.unverified]) {
      const answer = await login(person);
      expect(answer.status, answer.text).to.equal(200);
      expect(subOf(answer)).to.equal(person.id);
      const asked = old.seen.length;
      expect((await login(person)).status).to.equal(200);
      expect((await login({ ...person, password: 'wrong' })).status).to.equal(403);
      expect(old.seen.length).to.equal(asked);
    }
    const user = await server.users.get(OLD.bcrypt.id);
    expect(user).to.deep.include({
      user_metadata: { theme: 'bcrypt' },
      app_metadata: { plan: 'gold' },
      email_verified: true,
      name: 'The user bcrypt',
    });
    expect((await server.users.get(OLD.unverified.id))?.email_verified).to.equal(false);
    expect(await eventsOf(OLD.bcrypt.email, 'moved_password')).to.have.length(1);
  });

  it('are accepted at every entrance: the hosted page, /co/authenticate and the password grant without a realm', async () => {
    const hosted = await old.add();
    const landed = await logIn(createAgent(server), server, webRequest(), hosted);
    expect(responseOf(landed), landed.text).to.have.property('code');
    const cross = await old.add();
    const ticket = await createAgent(server).request('/co/authenticate', {
      headers: { origin: new URL(WEB_CALLBACK).origin },
      json: {
        client_id: 'web',
        username: cross.email,
        password: cross.password,
        realm: 'users',
        credential_type: REALM_GRANT,
      },
    });
    expect(ticket.status, ticket.text).to.equal(200);
    const plain = await old.add();
    const granted = await token({ grant_type: 'password', username: plain.email, password: plain.password });
    expect(granted.status, granted.text).to.equal(200);
    for (const { email } of [hosted, cross, plain]) expect(await isHere(email)).to.equal(true);
  });

  it('bring a user with their linked identities', async () => {
    const answer = await login(OLD.linked);
    expect(answer.status, answer.text).to.equal(200);
    expect(subOf(answer)).to.equal(OLD.linked.id);
    const identities = await server.users.identitiesOf(OLD.linked.id);
    expect(identities.map(({ provider }) => provider)).to.have.members(['auth0', 'google-oauth2']);
  });

  it('bring no user whose linked identity is another user’s here, nor one under another id than there', async () => {
    const person = await old.add();
    const social = { connection: 'google-oauth2', provider: 'google-oauth2', user_id: '1', isSocial: true };
    const [, database] = person.id.split('|');
    const own = { connection: 'users', provider: 'auth0', user_id: database, isSocial: false };
    old.instead['POST /oauth/token'] = changing(async (body) => ({
      ...body,
      ...(body.id_token && { id_token: await old.resign(body.id_token, { sub: 'google-oauth2|1' }) }),
    }));
    await server.users.create({
      identity: {
        connection: 'google-oauth2',
        provider: 'google-oauth2',
        upstreamId: '1',
        addresses: {},
        unique: [],
      },
    });
    old.instead['GET /api/v2/users/google-oauth2%7C1'] = answering(200, {
      user_id: 'google-oauth2|1',
      email: person.email,
      identities: [social, { ...own, profileData: { email: person.email } }],
    });
    await expectRefused(await login(person), person);
  });

  it('are found by a username, too', async () => {
    const { password, id } = await old.add({ username: 'grace' });
    const answer = await login({ email: 'Grace', password });
    expect(
      answer.status,
      answer.text + JSON.stringify(await eventsOf('Grace', 'old_password_failed')),
    ).to.equal(200);
    expect(subOf(answer)).to.equal(id);
  });

  it('are refused where the old tenant refuses them: wrong, without one, blocked, or unknown', async () => {
    const person = await old.add();
    await expectRefused(await login({ ...person, password: 'wrong' }), person);
    for (const one of [OLD.none, OLD.blocked, { email: 'nobody@example.test', password: 'x' }])
      await expectRefused(await login(one), one);
    expect((await login(person)).status).to.equal(200);
  });

  it('are counted here before a request leaves, so that a locked account asks nobody', async () => {
    const person = await old.add();
    for (let attempt = 0; attempt < 10; attempt++) await login({ ...person, password: `wrong-${attempt}` });
    const asked = old.seen.length;
    expect(asked).to.be.at.most(10);
    expect((await login(person)).status).to.equal(429);
    expect(old.seen.length).to.equal(asked);
    expect(await isHere(person.email)).to.equal(false);
  });

  it('tell the old tenant the address of the user, and send the password nowhere else', async () => {
    const person = await old.add();
    await login(person);
    const [asked] = old.asked('/oauth/token').filter(({ form }) => form.username === person.email);
    expect(asked?.headers['auth0-forwarded-for']).to.equal('127.0.0.1');
    expect(
      old.seen.filter(({ body, path }) => path !== '/oauth/token' && body.includes(person.password)),
    ).to.deep.equal([]);
    expect(server.logged()).not.to.contain(person.password).and.not.to.contain(MOVE_CLIENT.client_secret);
  });

  it('bring no user back who was removed here, whose address is free again', async () => {
    const person = await old.add();
    expect((await login(person)).status).to.equal(200);
    await server.users.remove(person.id);
    await expectRefused(await login(person), person);
    const answer = await createAgent(server).request('/dbconnections/signup', {
      json: { client_id: 'web', connection: 'users', email: person.email, password: 'Anew-1234-anew' },
    });
    expect(answer.status, answer.text).to.equal(200);
    expect(await server.users.get(person.id)).to.equal(undefined);
    expect(await isHere(person.email)).to.equal(true);
  });

  it('make one user of fifty logins at once', async () => {
    const person = await old.add();
    const before = (await state()).moved;
    const answers = await Promise.all(Array.from({ length: 50 }, () => login(person)));
    expect(answers.map(({ status }) => status).filter((status) => status !== 200)).to.deep.equal([]);
    expect(new Set(answers.map(subOf))).to.deep.equal(new Set([person.id]));
    expect(await server.users.withEmail(person.email)).to.have.length(1);
    expect(await eventsOf(person.email, 'moved_password')).to.have.length(1);
    expect((await state()).moved).to.equal(before + 1);
  });

  it('give nobody a user who has the id or the address already', async () => {
    const person = await old.add();
    const [, upstreamId] = person.id.split('|');
    const other = databaseUser({
      connection: 'users',
      email: 'first-here@example.test',
      password: 'Here-Horse-1',
    });
    const created = await server.users.create({ ...other, identity: { ...other.identity, upstreamId } });
    expect('user' in created && created.user.id).to.equal(person.id);
    await expectRefused(await login(person), person);
    expect((await server.users.get(person.id))?.email).to.equal('first-here@example.test');
    const named = await old.add();
    await server.users.create(
      databaseUser({ connection: 'staff', email: named.email, password: 'Here-Horse-1' }),
    );
    expect((await login(named)).status).to.equal(200);
    expect((await server.users.withEmail(named.email)).map(({ id }) => id))
      .to.include(named.id)
      .and.have.length(2);
  });

  describe('of users with a second factor there', () => {
    it('are right when it asks for the factor, which is asked for here: a telephone moves', async () => {
      const answer = await login(OLD.sms);
      expect(answer.json(), answer.text).to.include({ error: 'mfa_required' });
      const factors = await server.store.collection('authenticators').findBy('user', OLD.sms.id);
      expect(factors.map(({ kind, phone_number, active }) => ({ kind, phone_number, active }))).to.deep.equal(
        [{ kind: 'sms', phone_number: OLD.sms.phone, active: true }],
      );
      const asked = old.seen.length;
      expect((await login(OLD.sms)).json().error).to.equal('mfa_required');
      expect((await login({ ...OLD.sms, password: 'wrong' })).json()).to.deep.equal(WRONG);
      expect(old.seen.length).to.equal(asked);
    });

    it('let nobody in by the password alone where the factor does not move, unless the operator lets them enrol', async () => {
      await expectRefused(await login(OLD.otp), OLD.otp);
      const [event] = await eventsOf(OLD.otp.email, 'old_password_failed');
      expect(event?.description).to.contain('second factor').and.contain('--enrol');
      await run('move', 'trickle', 'users', '--enrol');
      const answer = await login(OLD.otp);
      expect(answer.json()).to.include({ error: 'mfa_required' });
      expect(answer.json().mfa_requirements).to.have.property('enroll');
      await run('move', 'trickle', 'users');
    });

    it('wrong ones are wrong', async () => {
      expect((await login({ ...OLD.sms, password: 'wrong' })).json()).to.deep.equal(WRONG);
    });
  });

  describe('are refused, and nobody is made here, when the old tenant', () => {
    const forged = (changes: object, how?: Parameters<StandIn['resign']>[2]): Instead =>
      changing(async (body) => ({
        ...body,
        ...(body.id_token && { id_token: await old.resign(body.id_token, changes, how) }),
      }));
    const TOKEN = 'POST /oauth/token';
    const cases: Record<string, [string, () => Instead]> = {
      'lets another user in': [TOKEN, () => forged({ sub: OLD.linked.id })],
      'answers with a user whom it does not have': [TOKEN, () => forged({ sub: 'auth0|nobody' })],
      'answers with a user in another form': [TOKEN, () => forged({ sub: { $ne: '' } })],
      'is of another issuer': [TOKEN, () => forged({ iss: 'https://elsewhere.example/' })],
      'has our issuer': [TOKEN, () => forged({ iss: server.issuer })],
      'answers for another application': [TOKEN, () => forged({ aud: 'web' })],
      'answers with an expired ID token': [TOKEN, () => forged({ exp: 1_000_000_000 })],
      'does not sign the ID token': [TOKEN, () => forged({}, { key: 'none' })],
      'signs by a key that it does not publish': [TOKEN, () => forged({}, { key: 'other' })],
      'answers without an ID token': [TOKEN, () => changing(({ id_token: _, ...body }) => body)],
      'answers with a text': [TOKEN, () => (_asked, response) => response.end('<html>')],
      'answers with a list': [TOKEN, () => answering(200, [])],
      redirects: [TOKEN, () => redirecting(`${old.origin}/oauth/token`)],
      'redirects to another server': [TOKEN, () => redirecting(`${server.url}/oauth/token`)],
      'answers without an end': [TOKEN, () => huge],
      'breaks the connection': [TOKEN, () => broken],
      fails: [TOKEN, () => answering(500, { error: 'invalid_grant' })],
      'limits the requests': [
        TOKEN,
        () => answering(429, { error: 'too_many_requests' }, { 'retry-after': '60' }),
      ],
      'locks the account': [TOKEN, () => answering(429, { error: 'too_many_attempts' })],
      'does not know the application': [TOKEN, () => answering(401, { error: 'invalid_client' })],
      'is a teapot': [TOKEN, () => answering(418, { error: 'constructor' })],
      'shows another user by its Management API': [
        '*',
        () => changing((body) => ({ ...body, user_id: OLD.linked.id })),
      ],
      'shows another address by its Management API': [
        '*',
        () => changing((body) => (body.user_id ? { ...body, email: 'other@example.test' } : body)),
      ],
      'shows a user of another connection': [
        '*',
        () =>
          changing((body) =>
            body.identities
              ? { ...body, identities: [{ ...body.identities[0], connection: 'staff' }] }
              : body,
          ),
      ],
      'shows a user without identities': ['*', () => changing(({ identities: _, ...body }) => body)],
      'does not let us read users': [
        '*',
        () => async (asked, response, pass) =>
          asked.path.startsWith('/api/')
            ? answering(403, { errorCode: 'insufficient_scope' })(asked, response, pass)
            : changing((body) => body)(asked, response, pass),
      ],
    };
    for (const [name, [path, instead]] of Object.entries(cases))
      it(name, async () => {
        const person = await old.add();
        old.instead[path] = instead();
        await expectRefused(await login(person), person);
        expect(await eventsOf(person.email, 'old_password_failed')).to.have.length(1);
        old.reset();
        // What has failed is not held against the user.
        expect((await login(person)).status).to.equal(200);
      });

    it('cannot be reached at all', async () => {
      const person = await old.add();
      const moves = server.store.collection('moves');
      await moves.update(MOVE, (move) => ({ ...move, origin: 'https://127.0.0.1:1' }));
      await expectRefused(await login(person), person);
      await moves.update(MOVE, (move) => ({ ...move, origin: old.origin }));
      expect((await login(person)).status).to.equal(200);
    });

    describe('keeps us waiting, and', () => {
      let patient: TestServer;
      before(async () => {
        patient = server;
        server = await startServer({ tenant, waits: { oldTenant: 300 } });
        await open();
        await run('move', 'trickle', 'users');
      });
      after(async () => {
        await server.stop();
        server = patient;
      });

      for (const [name, instead] of Object.entries({ 'does not answer': silent, 'answers for ever': slow }))
        it(name, async () => {
          const person = await old.add();
          old.instead[TOKEN] = instead;
          await expectRefused(await login(person), person);
          expect(await eventsOf(person.email, 'old_password_failed')).to.have.length(1);
        });
    });
  });

  it('are asked for once more when a limit there has room in a moment', async () => {
    const person = await old.add();
    let asked = 0;
    old.instead['POST /oauth/token'] = (request, response, pass) =>
      asked++ === 0
        ? answering(429, { error: 'too_many_requests' }, { 'retry-after': '1' })(request, response, pass)
        : changing((body) => body)(request, response, pass);
    expect((await login(person)).status).to.equal(200);
  });

  describe('of users who forgot them', () => {
    it('are replaced by a new one after the mail, under the same id', async () => {
      const { email, id } = await old.add();
      await resetPassword(server, email, 'New-Horse-Battery-1');
      expect(old.asked('/oauth/token').some(({ form }) => form.username === email)).to.equal(false);
      old.reset();
      const answer = await login({ email, password: 'New-Horse-Battery-1' });
      expect(subOf(answer)).to.equal(id);
      expect(old.seen).to.deep.equal([]);
      expect((await login({ email, password: OLD.bcrypt.password })).json()).to.deep.equal(WRONG);
    });

    it('are not, for users who are blocked there, whose factor does not move, or who are unknown', async () => {
      for (const email of [OLD.blocked.email, 'unknown@example.test']) {
        await createAgent(server).request('/dbconnections/change_password', {
          json: { connection: 'users', email },
        });
        expect(await isHere(email)).to.equal(false);
      }
      expect(await messagesTo(server, OLD.blocked.email)).to.deep.equal([]);
    });
  });

  describe('protect their users from sign-ups', () => {
    const signUp = (email: string) =>
      createAgent(server).request('/dbconnections/signup', {
        json: { client_id: 'web', connection: 'users', email, password: 'Stranger-Horse-1' },
      });

    it('with an address that is taken there, as with one that is taken here', async () => {
      const { email } = await old.add();
      const taken = await signUp(email);
      const here = await signUp(OLD.bcrypt.email);
      expect(taken.status).to.equal(400);
      expect(taken.text).to.equal(here.text);
      expect(await isHere(email)).to.equal(false);
      for (const one of [OLD.linked.email, OLD.blocked.email, OLD.none.email])
        expect((await signUp(one)).text).to.equal(here.text);
    });

    it('and a free address is free', async () => {
      expect((await signUp('new-here@example.test')).status).to.equal(200);
    });

    it('and while it cannot be asked, nobody signs up', async () => {
      const { email } = await old.add();
      old.instead['*'] = broken;
      expect((await signUp(email)).status).to.equal(503);
      expect((await signUp('also-new@example.test')).status).to.equal(503);
    });
  });

  describe('are not asked for', () => {
    const expectNotAsked = async () => {
      const person = await old.add();
      old.reset();
      await expectRefused(await login(person), person);
      expect(old.seen).to.deep.equal([]);
    };

    it('after the bridge was ended', async () => {
      await run('move', 'trickle', 'users', '--end');
      await expectNotAsked();
      await run('move', 'trickle', 'users');
    });

    it('after the date of the bridge, or that of the move', async () => {
      const soon = new Date(Date.now() + DAY).toISOString();
      await run('move', 'trickle', 'users', '--until', soon);
      server.tick(DAY + 1000);
      await expectNotAsked();
      server.tick(-DAY - 1000);
      await run('move', 'trickle', 'users');
      await open(soon);
      server.tick(DAY + 1000);
      await expectNotAsked();
      server.tick(-DAY - 1000);
      await open();
    });

    it('after the move was closed', async () => {
      expect(await run('move', 'close')).to.contain('accepted any more');
      await expectNotAsked();
      expect(await run('move', 'status')).to.contain('No move is open');
      await open();
      await run('move', 'trickle', 'users');
    });

    it('in a connection for which there is no bridge', async () => {
      const person = await old.add();
      old.reset();
      const answer = await token({
        grant_type: REALM_GRANT,
        realm: 'staff',
        username: person.email,
        password: person.password,
      });
      expect(answer.status).to.equal(403);
      expect(old.seen).to.deep.equal([]);
    });
  });
});
