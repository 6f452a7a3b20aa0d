// Users who stay in a custom database with their passwords: each login asks it.
import { expect } from 'chai';
import { createAgent } from '../../support/agent.ts';
import { tenant as base, logIn, payload, responseOf, webRequest } from '../../support/flows.ts';
import {
  elsewhereOptions,
  KEY,
  type LegacyDatabase,
  movingOptions,
  startLegacyDatabase,
} from '../../support/legacy-database.ts';
import { startServer, type TestServer } from '../../support/server.ts';
import { tenantWith } from '../../support/tenant.ts';
import { REALM, realmLogin } from './support.ts';

const PASSWORD = 'old';

describe('users who stay in a custom database', () => {
  let legacy: LegacyDatabase;
  let server: TestServer;
  const database = (name: string, scripts: Record<string, string | null> = {}, more: object = {}) => ({
    name,
    enabled_clients: ['web', 'spa'],
    options: { ...elsewhereOptions(legacy, scripts), ...more },
  });
  const answering = (user: string) =>
    `function login(email, password, callback) { callback(null, ${user}); }`;
  before(async () => {
    legacy = await startLegacyDatabase();
    server = await startServer({
      tenant: tenantWith({
        change: { web: (one) => ({ grant_types: [...one.grant_types, REALM], organization_usage: 'allow' }) },
        users: [],
        organizations: [
          {
            id: 'org_acme',
            name: 'acme',
            display_name: 'Acme',
            metadata: { tier: 'gold' },
            connections: [{ name: 'aware', assign_membership_on_login: true }],
          },
        ],
        databases: [
          ...base.databases.filter(({ name }) => name !== 'users'),
          database('users'),
          database('other'),
          database('moving', {}, { ...movingOptions(legacy) }),
          database('names', {}, { requires_username: true }),
          database('first', {}, { set_user_root_attributes: 'on_first_login' }),
          database('stranger', {
            login: answering("{ user_id: 's-1', email: 'somebody-else@example.test' }"),
          }),
          database('same-id', { login: answering("{ user_id: 'MyConnection1|7', email }") }),
          database('as-name', {
            login: answering("{ user_id: email, email, username: 'Victim@example.test' }"),
          }),
          database('half', { login: answering("{ user_id: 'a\\ud800', email }") }),
          database('tokens', {
            login: answering("{ user_id: 't-1', email, access_token: 'their-token', plan: 'gold' }"),
          }),
          database(
            'aware',
            {
              login:
                'function (email, password, context, callback) { callback(null, { user_id: email, email, name: JSON.stringify(context) }); }',
            },
            { enable_script_context: true },
          ),
        ],
      }),
    });
  });
  after(async () => {
    await server?.stop();
    await legacy?.stop();
  });

  let people = 0;
  const someone = (more = {}) => {
    const email = `stayer-${++people}@example.test`;
    return { email, user: legacy.add(email, PASSWORD, more) };
  };
  const grant = (username: string, password: string, realm = 'users', more: Record<string, string> = {}) =>
    realmLogin(server, { username, password, realm, ...more });
  const subject = (answer: { json(): any }) => payload(answer.json().id_token).sub;
  const events = async (name: string, type = 'f') => {
    const { records } = await server.store.collection('logs').list({ limit: 500 });
    return records.filter((one) => one.connection === name && one.type === type);
  };
  const stored = (id: string) => server.store.collection('users').get(id);

  it('log in by its script each time, and no password is stored here', async () => {
    const { email, user } = someone();
    for (let n = 0; n < 2; n++) {
      const requestsBefore = legacy.seen.length;
      const answer = await grant(email.toUpperCase(), PASSWORD);
      expect(answer.status, answer.text).to.equal(200);
      expect(payload(answer.json().id_token)).to.include({
        sub: `auth0|${user.id}`,
        email,
        email_verified: true,
      });
      // Before the first login, `get_user` is asked whose the name is.
      expect(legacy.seen.length).to.equal(requestsBefore + (n === 0 ? 2 : 1));
    }
    expect((await grant(email, 'wrong')).status).to.equal(403);
    expect(await server.store.collection('credentials').get(`auth0|${user.id}`)).to.equal(undefined);
    legacy.users.delete(email);
    expect((await grant(email, PASSWORD)).status).to.equal(403);
  });

  it('log in at the hosted page', async () => {
    const { email } = someone({ email_verified: false });
    const answer = await logIn(createAgent(server), server, webRequest({ connection: 'users' }), {
      email,
      password: PASSWORD,
    });
    expect(responseOf(answer).code).to.be.a('string');
  });

  it('are updated from the database at each login; other changes made here stay', async () => {
    const { email, user } = someone({ metadata: { app_metadata: { plan: 'a' }, locale: 'de' } });
    const id = subject(await grant(email, PASSWORD));
    await server.store
      .collection('users')
      .update(id, (before) => ({ ...before, app_metadata: { plan: 'a', own: 1 } }));
    Object.assign(user, {
      name: 'Another Name',
      metadata: { app_metadata: { plan: 'b' } },
      email_verified: false,
    });
    expect(payload((await grant(email, PASSWORD)).json().id_token)).to.include({ name: 'Another Name' });
    expect((await stored(id))?.app_metadata).to.deep.equal({ plan: 'b', own: 1 });
    // An address that was verified here stays verified.
    expect((await stored(id))?.email_verified).to.equal(true);
    const { email: other, user: fixed } = someone();
    await grant(other, PASSWORD, 'first');
    Object.assign(fixed, { name: 'Not Taken' });
    expect(payload((await grant(other, PASSWORD, 'first')).json().id_token).name).to.match(/^Person/);
  });

  it('are found by a username, too, in any case', async () => {
    const { email, user } = someone({ username: `name${people}` });
    expect(subject(await grant(email, PASSWORD, 'names'))).to.equal(`auth0|${user.id}`);
    const requestsBefore = legacy.seen.length;
    expect((await grant(user.username ?? '', PASSWORD, 'names')).status).to.equal(200);
    expect(legacy.seen.length).to.equal(requestsBefore + 1);
    expect((await server.store.collection('users').findBy('email', email)).length).to.equal(1);
  });

  it('are one user after twenty concurrent first logins', async () => {
    const { email, user } = someone();
    const answers = await Promise.all(Array.from({ length: 20 }, () => grant(email, PASSWORD)));
    expect(new Set(answers.map(subject))).to.deep.equal(new Set([`auth0|${user.id}`]));
    expect((await server.store.collection('users').findBy('email', email)).length).to.equal(1);
  });

  it('get the same answer for a wrong password, an unknown user and a failing database', async () => {
    const { email } = someone();
    const wrong = await grant(email, 'wrong');
    expect(wrong.status).to.equal(403);
    const unknown = await grant('nobody@example.test', 'wrong');
    legacy.misbehave = (response) => response.writeHead(500).end();
    const failed = await grant(email, PASSWORD);
    legacy.misbehave = undefined;
    for (const one of [unknown, failed])
      expect([one.status, one.text]).to.deep.equal([wrong.status, wrong.text]);
    expect((await events('users')).at(-1)).to.include({
      user_name: email,
      description: 'The login script failed: status 500 for ***',
    });
  });

  it('are locked after ten wrong passwords, and the script is not run again', async () => {
    const { email } = someone();
    expect((await grant(email, PASSWORD)).status).to.equal(200);
    for (let n = 0; n < 10; n++) expect((await grant(email, `wrong-${n}`)).status).to.equal(403);
    const requestsBefore = legacy.seen.length;
    expect((await grant(email, PASSWORD)).status).to.equal(429);
    expect(legacy.seen.length).to.equal(requestsBefore);
  });

  describe('are never logged in as another user', () => {
    // The log takes one such event of an address in ten minutes, after the first ten.
    beforeEach(() => server.tick(600_000));
    const refused = async (answer: Awaited<ReturnType<typeof grant>>, connection: string, why: RegExp) => {
      expect([answer.status, answer.json().error_description]).to.deep.equal([
        403,
        'Wrong email or password.',
      ]);
      expect((await events(connection)).at(-1)?.description).to.match(why);
    };

    it('by a result with another address than the requested one', async () => {
      await refused(
        await grant('asked@example.test', 'any', 'stranger'),
        'stranger',
        /another user than the one/,
      );
      expect(await stored('auth0|s-1')).to.equal(undefined);
    });

    it('by the id of another user of the connection', async () => {
      expect((await grant('first@example.test', 'any', 'same-id')).status).to.equal(200);
      await refused(
        await grant('second@example.test', 'any', 'same-id'),
        'same-id',
        /MyConnection1\|7 .*another user's/,
      );
      expect((await stored('auth0|MyConnection1|7'))?.email).to.equal('first@example.test');
    });

    it('by the id of a user of another connection', async () => {
      const { email, user } = someone();
      expect((await grant(email, PASSWORD)).status).to.equal(200);
      await refused(await grant(email, PASSWORD, 'other'), 'other', /another user's/);
      const again = `again-${email}`;
      legacy.add(again, PASSWORD, { id: user.id });
      await refused(await grant(again, PASSWORD, 'moving'), 'moving', /another user's/);
    });

    it('by an address of another user of the connection', async () => {
      const { email } = someone();
      expect((await grant(email, PASSWORD)).status).to.equal(200);
      legacy.add(email, PASSWORD, { id: `new-${email}` });
      await refused(await grant(email, PASSWORD), 'users', /another user's/);
    });

    it('by a username that is an e-mail address, or by an id that stores cannot distinguish from others', async () => {
      expect((await grant('squatter@example.test', 'any', 'as-name')).status).to.equal(200);
      expect((await stored('auth0|squatter@example.test'))?.username).to.equal(undefined);
      await refused(await grant('a@example.test', 'any', 'half'), 'half', /no user with a user_id/);
    });

    it('by the id of a user who has moved here and has another address', async () => {
      const { email, user } = someone();
      expect((await grant(email, PASSWORD, 'moving')).status).to.equal(200);
      const again = `thief-${email}`;
      legacy.add(again, PASSWORD, { id: user.id });
      await refused(await grant(again, PASSWORD, 'moving'), 'moving', /another user's/);
    });
  });

  it('keep the tokens that a script returns with their identity, not in their profile', async () => {
    const id = subject(await grant('with-tokens@example.test', 'any', 'tokens'));
    const [identity] = await server.store.collection('identities').findBy('user', id);
    expect(identity?.upstream).to.deep.equal({ access_token: 'their-token' });
    expect(identity?.attributes).to.deep.equal({ plan: 'gold' });
    expect(JSON.stringify(await stored(id))).not.to.include('their-token');
  });

  it('pass a context to scripts that want one', async () => {
    const nameOf = async (email: string) =>
      (await server.store.collection('users').findBy('email', email))[0]?.name;
    await grant('aware@example.test', 'any', 'aware');
    expect(await nameOf('aware@example.test')).to.equal('{}');
    const email = 'member@example.test';
    const request = webRequest({ connection: 'aware', organization: 'org_acme' });
    await logIn(createAgent(server), server, request, { email, password: 'any' });
    expect(JSON.parse((await nameOf(email)) ?? '')).to.deep.equal({
      organization: { id: 'org_acme', name: 'acme', display_name: 'Acme', metadata: { tier: 'gold' } },
    });
    const other = 'by-grant@example.test';
    await grant(other, 'any', 'aware', { organization: 'org_acme' });
    expect(JSON.parse((await nameOf(other)) ?? '').organization).to.include({ id: 'org_acme' });
  });

  describe('with a script that fails', () => {
    it('are not locked; the script is not run again after thirty failures', async () => {
      const { email } = someone();
      const { email: other } = someone();
      legacy.misbehave = (response) => response.writeHead(500).end();
      const answers = [];
      for (let n = 0; n < 15; n++) answers.push((await grant(email, PASSWORD)).status);
      expect(answers).to.deep.equal(Array(15).fill(403));
      legacy.misbehave = undefined;
      expect((await grant(email, PASSWORD)).status).to.equal(200);
      legacy.misbehave = (response) => response.writeHead(500).end();
      for (let n = 0; n < 30; n++) answers.push((await grant(other, `guess-${n}`)).status);
      const requestsBefore = legacy.seen.length;
      const last = await grant(other, 'guess');
      legacy.misbehave = undefined;
      expect([last.status, last.json().error]).to.deep.equal([429, 'too_many_requests']);
      expect(legacy.seen.length).to.equal(requestsBefore);
    });

    it('leave neither passwords nor the configuration in the logs', () => {
      expect(server.logged()).not.to.include(KEY).and.not.include('guess-');
    });
  });
});
