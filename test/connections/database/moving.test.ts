// Users who move here from a custom database at their first login.
import { expect } from 'chai';
import { createAgent } from '../../support/agent.ts';
import { tenant as base, logIn, payload, redeem, responseOf, webRequest } from '../../support/flows.ts';
import { messagesTo } from '../../support/inbox.ts';
import {
  KEY,
  type LegacyDatabase,
  movingOptions,
  startLegacyDatabase,
} from '../../support/legacy-database.ts';
import { resetPassword } from '../../support/reset.ts';
import { SHORT_SCRIPTS, startServer, type TestServer } from '../../support/server.ts';
import { tenantWith } from '../../support/tenant.ts';
import { REALM, realmLogin } from './support.ts';

const PASSWORD = 'old';

describe('users who move here from a custom database', () => {
  let legacy: LegacyDatabase;
  let server: TestServer;
  /** Milliseconds waited so far. */
  const pauses: number[] = [];
  const generous = { capacity: 10_000, perMinute: 10_000 };
  const database = (name: string, scripts: Record<string, string> = {}, more: object = {}) => ({
    name,
    enabled_clients: ['web', 'spa'],
    options: { ...movingOptions(legacy, scripts), ...more },
  });
  before(async () => {
    legacy = await startLegacyDatabase();
    server = await startServer({
      pause: async (ms) => void pauses.push(ms),
      waits: SHORT_SCRIPTS,
      tenant: tenantWith({
        change: { web: (one) => ({ grant_types: [...one.grant_types, REALM] }) },
        attackProtection: {
          rateLimits: { ...base.attackProtection.rateLimits, changePassword: generous, signup: generous },
        },
        databases: [
          ...base.databases.filter(({ name }) => name !== 'users'),
          database('users'),
          database('other'),
          database('loops', { login: 'function login(email, password, callback) { for (;;); }' }),
          database('escapes', {
            login: `function login(email, password, callback) {
              const found = [typeof process, typeof WebAssembly, typeof globalThis.host];
              try { require('fs'); found.push('fs'); } catch (error) { found.push(error.code); }
              try { found.push(this.constructor.constructor('return typeof process')()); } catch { found.push('none'); }
              console.log('tried', { email, password });
              callback(new Error(found.join() + ' by ' + password));
            }`,
          }),
          database('nameless', { login: 'function (e, p, callback) { callback(null, { email: e }); }' }),
          database('off', {}, { enabledDatabaseCustomization: false }),
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
    const email = `mover-${++people}@example.test`;
    return { email, user: legacy.add(email, PASSWORD, more) };
  };
  const grant = (username: string, password: string, realm = 'users') =>
    realmLogin(server, { username, password, realm });
  const events = async (name: string) => {
    const { records } = await server.store.collection('logs').list({ limit: 500 });
    return records.filter(({ connection, type }) => connection === name && type === 'f');
  };

  it('are created by the first login, as the script returns them, and later logins do not ask the script', async () => {
    const { email, user } = someone();
    const first = await grant(email, PASSWORD);
    expect(first.status, first.text).to.equal(200);
    expect(payload(first.json().id_token)).to.include({
      sub: `auth0|${user.id}`,
      email,
      email_verified: true,
      name: user.name,
    });
    const stored = await server.store.collection('users').get(`auth0|${user.id}`);
    expect(stored?.app_metadata).to.deep.equal({ plan: 'old' });
    const requestsBefore = legacy.seen.length;
    legacy.users.delete(email);
    expect((await grant(email, PASSWORD)).status).to.equal(200);
    expect((await grant(email, 'wrong')).status).to.equal(403);
    expect(legacy.seen.length).to.equal(requestsBefore);
  });

  it('log in at the hosted page; an address not verified there is not verified here', async () => {
    const { email } = someone({ email_verified: false });
    const agent = createAgent(server);
    const answer = await logIn(agent, server, webRequest({ connection: 'users' }), {
      email,
      password: PASSWORD,
    });
    const { code } = responseOf(answer);
    const tokens = await redeem(agent, code);
    expect(payload(tokens.json().id_token)).to.include({ email, email_verified: false });
  });

  it('get the same answer for a wrong password, an unknown user and a failing database', async () => {
    const { email } = someone();
    const wrong = await grant(email, 'wrong');
    const unknown = await grant('nobody@example.test', 'wrong');
    legacy.misbehave = (response) => response.writeHead(500).end();
    const failed = await grant(email, PASSWORD);
    legacy.misbehave = undefined;
    expect(wrong.status).to.equal(403);
    expect([unknown.status, unknown.text]).to.deep.equal([wrong.status, wrong.text]);
    expect([failed.status, failed.text]).to.deep.equal([wrong.status, wrong.text]);
    const descriptions = (await events('users'))
      .filter((one) => one.user_name === email && one.client_id === 'web')
      .map(({ description }) => description);
    expect(descriptions).to.have.members([
      'The get_user script failed: status 500',
      'The login script failed: status 500 for ***',
    ]);
    expect((await grant(email, PASSWORD)).status).to.equal(200);
  });

  it('are rejected after multiples of half a second, whatever the reason; a right password does not wait', async () => {
    const [moved, there] = [someone(), someone()];
    pauses.length = 0;
    expect((await grant(moved.email, PASSWORD)).status).to.equal(200);
    expect((await grant(moved.email, PASSWORD)).status).to.equal(200);
    expect(pauses).to.deep.equal([]);
    for (const refused of [
      () => grant(moved.email, 'wrong'),
      () => grant(there.email, 'wrong'),
      () => grant('nobody-at-all@example.test', 'wrong'),
      async () => {
        legacy.misbehave = (response) => response.writeHead(500).end();
        const answer = await grant(there.email, PASSWORD);
        legacy.misbehave = undefined;
        return answer;
      },
    ]) {
      pauses.length = 0;
      expect((await refused()).status).to.equal(403);
      expect(pauses).to.have.length(1);
      expect(pauses[0]).to.be.above(0).and.at.most(500);
    }
  });

  it('are locked after ten wrong passwords, as all users are', async () => {
    const { email } = someone();
    const answers = [];
    for (let n = 0; n < 11; n++) answers.push((await grant(email, `wrong-${n}`)).status);
    expect(answers.at(0)).to.equal(403);
    expect(answers.at(-1)).to.equal(429);
    expect((await grant(email, PASSWORD)).status).to.equal(429);
  });

  it('are one user after fifty concurrent first logins', async () => {
    const { email, user } = someone();
    const answers = await Promise.all(Array.from({ length: 50 }, () => grant(email, PASSWORD)));
    const right = answers.filter(({ status }) => status === 200);
    expect(right.length).to.equal(50);
    const subjects = new Set(right.map((one) => payload(one.json().id_token).sub));
    expect([...subjects]).to.deep.equal([`auth0|${user.id}`]);
    const found = await server.store.collection('users').findBy('email', email);
    expect(found.length).to.equal(1);
  });

  it('never become a user of another connection with the same id', async () => {
    const { email, user } = someone();
    expect((await grant(email, PASSWORD)).status).to.equal(200);
    const again = `again-${email}`;
    legacy.add(again, PASSWORD, { id: user.id });
    expect((await grant(again, PASSWORD, 'other')).status).to.equal(403);
    expect((await grant(email, PASSWORD, 'other')).status).to.equal(403);
  });

  it('are rejected if the script does not end or returns no id; the script reaches no network, and no password is stored', async () => {
    const secret = 'a "password" of theirs';
    for (const [connection, words] of [
      ['loops', /used the processor for more than 1000 ms/],
      ['nameless', /gave no user with a user_id/],
      [
        'escapes',
        /^The login script failed: undefined,undefined,undefined,MODULE_NOT_FOUND,undefined by \*\*\*$/,
      ],
    ] as const) {
      expect((await grant('ada@example.test', secret, connection)).status, connection).to.equal(403);
      expect((await events(connection)).map(({ description }) => description ?? '').join()).to.match(words);
    }
    const shown = await createAgent(server).get('/dev/scripts.json?connection=escapes');
    expect(shown.json()[0]).to.deep.include({ connection: 'escapes', script: 'login' });
    expect(shown.text).to.include('tried').and.not.include('of theirs');
    expect(server.logged()).not.to.include('of theirs').and.not.include(KEY);
  });

  it('never get the password of a linked user of another database who had their id', async () => {
    const [owner, { email, user }] = [someone(), someone()];
    for (const one of [owner.email, email]) expect((await grant(one, PASSWORD)).status).to.equal(200);
    const main = `auth0|${owner.user.id}`;
    expect(await server.users.link(main, `auth0|${user.id}`)).to.equal(true);
    const bare = await server.users.create({
      identity: {
        connection: 'users',
        provider: 'auth0',
        upstreamId: 'bare',
        addresses: { email: 'bare@example.test' },
        unique: ['email'],
      },
    });
    expect('user' in bare && (await server.users.link(main, bare.user.id))).to.equal(true);
    const [strangers, other] = [['stranger@example.test', 'bold@example.test'], 'bystander@example.test'];
    legacy.add(strangers[0] ?? '', PASSWORD, { id: user.id });
    legacy.add(strangers[1] ?? '', PASSWORD, { id: 'bare' });
    legacy.add(other, PASSWORD);
    for (const stranger of strangers) {
      expect((await grant(stranger, PASSWORD, 'other')).status).to.equal(403);
      await createAgent(server).request('/dbconnections/change_password', {
        json: { connection: 'other', email: stranger },
      });
    }
    // The mail would come later, if there were one.
    await resetPassword(server, other, 'Entirely-New-Words-7', 'other');
    for (const stranger of strangers) expect(await messagesTo(server, stranger)).to.deep.equal([]);
    for (const id of [user.id, 'bare']) expect(await server.users.get(`auth0|${id}`)).to.equal(undefined);
    expect((await grant(email, PASSWORD)).status).to.equal(200);
  });

  it('cannot be signed up by a stranger before their first login, even while the database fails', async () => {
    const { email } = someone();
    const signUp = (address: string) =>
      createAgent(server).request('/dbconnections/signup', {
        json: { client_id: 'web', connection: 'users', email: address, password: 'Of-A-Stranger-1' },
      });
    const refusal = await signUp(email.toUpperCase());
    expect(refusal.json()).to.include({ code: 'invalid_signup' });
    legacy.misbehave = (response) => response.writeHead(500).end();
    expect((await signUp(email)).status).to.equal(503);
    legacy.misbehave = undefined;
    expect((await grant(email, PASSWORD)).status).to.equal(200);
    expect((await signUp('new-one@example.test')).status).to.equal(200);
  });

  it('are not moved if the connection is not customized', async () => {
    const { email } = someone();
    const requestsBefore = legacy.seen.length;
    expect((await grant(email, PASSWORD, 'off')).status).to.equal(403);
    expect(legacy.seen.length).to.equal(requestsBefore);
  });
});
