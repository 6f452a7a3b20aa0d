// Changes of users who stay in a custom database are made there: sign-up, password, address, removal.
import { expect } from 'chai';
import { withCustomDatabases } from '../../../src/features/connections/database/custom/custom-users.ts';
import type { AuthError } from '../../../src/http/errors.ts';
import { systemRandom } from '../../../src/runtime/secrets.ts';
import { isStill } from '../../../src/users/still.ts';
import type { User } from '../../../src/users/user.ts';
import type { Users } from '../../../src/users/users.ts';
import { callsWith, type ManagementCall, managementToken, startManaged } from '../../management/support.ts';
import { createAgent, readForm } from '../../support/agent.ts';
import {
  authorize,
  tenant as base,
  follow,
  payload,
  responseOf,
  token,
  webRequest,
} from '../../support/flows.ts';
import { messagesTo, nextMessageTo } from '../../support/inbox.ts';
import {
  elsewhereOptions,
  type LegacyDatabase,
  movingOptions,
  startLegacyDatabase,
} from '../../support/legacy-database.ts';
import { resetForm } from '../../support/reset.ts';
import type { TestServer } from '../../support/server.ts';
import { aMoment, PATIENCE } from '../../support/wait-until.ts';
import { REALM, realmLogin } from './support.ts';

const OLD = 'old';

describe('what a login allows no more', () => {
  it('is not done in a custom database, either', async () => {
    const judged = { id: 'auth0|1', email: 'ada@example.test', email_verified: true };
    const user = { ...judged, last_password_reset: '2026-01-01T00:00:00.000Z' };
    const identity = { ...judged, id: 'users|1', user_id: user.id, provider: 'auth0', upstream_id: '1' };
    const scripts: string[] = [];
    const users = withCustomDatabases(
      {
        get: async () => user,
        identitiesOf: async () => [{ ...identity, connection: 'users' }],
        identityInConnection: async () => undefined,
        update: async () => undefined,
        remove: async () => undefined,
      } as unknown as Users,
      {
        config: {
          connection: async () =>
            ({
              name: 'users',
              strategy: 'auth0',
              options: elsewhereOptions({ url: '' } as LegacyDatabase),
            }) as never,
        },
        customDatabases: {
          modeOf: async () => 'elsewhere',
          find: async () => undefined,
          change: async (_request: unknown, script: string) => void scripts.push(script),
        } as never,
        leases: { afterOthers: async () => undefined } as never,
        random: systemRandom,
      },
    );
    await users.update(user.id, { email: 'thief@example.test' }, undefined, isStill(judged as User));
    const removal = await users.remove(user.id, judged as User).catch((thrown: AuthError) => thrown.status);
    expect([removal, scripts]).to.deep.equal([401, []]);
    await users.update(user.id, { email: 'lovelace@example.test' }, undefined, isStill(user as User));
    await users.remove(user.id, user as User);
    expect(scripts).to.deep.equal(['change_email', 'delete']);
  });
});

const NEW = 'A-New-Password-1';
const generous = { capacity: 10_000, perMinute: 10_000 };

describe('changes of users in a custom database', () => {
  let legacy: LegacyDatabase;
  let server: TestServer;
  let call: ManagementCall;
  before(async () => {
    legacy = await startLegacyDatabase();
    const database = (name: string, options: object) => ({ name, enabled_clients: ['web', 'spa'], options });
    server = await startManaged({
      ...base,
      users: [],
      attackProtection: {
        rateLimits: {
          ...base.attackProtection.rateLimits,
          signup: generous,
          changePassword: generous,
          customDatabase: generous,
        },
      },
      clients: base.clients.map((one) =>
        one.client_id === 'web' ? { ...one, grant_types: [...one.grant_types, REALM] } : one,
      ),
      databases: [
        database('users', elsewhereOptions(legacy)),
        database('moving', movingOptions(legacy)),
        database('named', { ...elsewhereOptions(legacy), requires_username: true }),
        database(
          'login-only',
          elsewhereOptions(legacy, {
            get_user: null,
            create: null,
            verify: null,
            change_password: null,
            change_email: null,
            change_username: null,
            delete: null,
          }),
        ),
        database(
          'picky',
          elsewhereOptions(legacy, {
            create: `function create(user, callback) {
              callback(new ValidationError('email-too-long', 'Not with ' + user.password + '.'));
            }`,
          }),
        ),
      ],
    });
    call = callsWith(server, await managementToken(server));
  });
  after(async () => {
    await server?.stop();
    await legacy?.stop();
  });

  let people = 0;
  const fresh = () => `changing-${++people}@example.test`;
  const grant = (username: string, password: string, realm = 'users', scope = 'openid') =>
    realmLogin(server, { username, password, realm, scope });
  /** Creates a user who has logged in. */
  const someone = async (more = {}, connection = 'users') => {
    const email = fresh();
    const user = legacy.add(email, OLD, more);
    const answer = await grant(email, OLD, connection);
    expect(answer.status, answer.text).to.equal(200);
    const id = payload(answer.json().id_token).sub as string;
    return { email, user, id, path: `/users/${encodeURIComponent(id)}` };
  };
  const signUp = (email: string, more: object = {}) =>
    createAgent(server).request('/dbconnections/signup', {
      json: { client_id: 'web', connection: 'users', email, password: NEW, ...more },
    });
  const failing = async <T>(work: () => Promise<T>, status = 500): Promise<T> => {
    legacy.misbehave = (response) => response.writeHead(status).end();
    try {
      return await work();
    } finally {
      legacy.misbehave = undefined;
    }
  };
  const usersWith = (email: string) => server.store.collection('users').findBy('email', email);
  const noPassword = async (id: string) =>
    expect([undefined, '']).to.include((await server.store.collection('credentials').get(id))?.passwordHash);
  /** Returns the newest event as soon as it has the type; events of background work come later. */
  const eventSaying = async (type: string, description: string, about?: string) => {
    for (const deadline = performance.now() + PATIENCE; performance.now() < deadline; ) {
      const { records } = await server.store.collection('logs').list({ limit: 1000 });
      const found = records
        .filter((one) => one.type === type && one.description === description)
        .findLast((one) => about === undefined || one.user_name === about);
      if (found !== undefined) return found;
      await aMoment();
    }
    throw new Error(`there is no event ${type} that says: ${description}`);
  };

  describe('a sign-up', () => {
    it('creates the user there, and here by their id without a password', async () => {
      const email = fresh();
      const answer = await signUp(email.toUpperCase(), { given_name: 'Grace', user_metadata: { plan: 'x' } });
      expect(answer.status, answer.text).to.equal(200);
      const databaseUser = legacy.users.get(email);
      expect(answer.json()).to.include({ _id: String(databaseUser?.id), email, email_verified: false });
      expect(legacy.writes.at(-1)?.[1]).to.deep.include({
        email,
        given_name: 'Grace',
        user_metadata: { plan: 'x' },
        connection: 'users',
        client_id: 'web',
        tenant: new URL(server.issuer).hostname,
      });
      await noPassword(`auth0|${databaseUser?.id}`);
      expect((await grant(email, NEW)).status).to.equal(200);
      expect((await usersWith(email))[0]?.user_metadata).to.deep.equal({ plan: 'x' });
    });

    it('logs in on the hosted page', async () => {
      const agent = createAgent(server);
      const request = webRequest({ screen_hint: 'signup', connection: 'users' });
      const page = await follow(agent, await authorize(agent, request), server.url);
      const { action, fields } = readForm(page, 'email');
      const email = fresh();
      const form = { ...fields, email, password: NEW };
      const busy = await failing(() => agent.request(action, { form }));
      expect(busy.status).to.equal(503);
      expect(busy.text).to.contain('Try again in a moment').and.to.contain(email);
      const done = await follow(agent, await agent.request(action, { form }), server.url);
      expect(responseOf(done).code).to.be.a('string');
    });

    it('is rejected for an address taken there or here, without telling that it is taken', async () => {
      const { email } = await someone();
      const writes = legacy.writes.length;
      expect((await signUp(email)).json()).to.include({ code: 'invalid_signup' });
      const databaseUser = fresh();
      legacy.add(databaseUser, OLD);
      expect((await signUp(databaseUser)).json()).to.include({ code: 'invalid_signup' });
      // A user who was removed there meanwhile still exists here.
      legacy.users.delete(email);
      expect((await signUp(email)).json()).to.include({ code: 'invalid_signup' });
      expect(legacy.writes.length).to.equal(writes);
    });

    it('creates one user if two use one address at the same time', async () => {
      const email = fresh();
      const answers = await Promise.all([signUp(email), signUp(email)]);
      expect(answers.map(({ status }) => status).sort()).to.deep.equal([200, 400]);
      expect((await usersWith(email)).length).to.equal(1);
    });

    it('passes on the message of a ValidationError, without the password', async () => {
      const answer = await signUp(fresh(), { connection: 'picky' });
      expect([answer.status, answer.json()]).to.deep.equal([
        400,
        {
          error: 'email-too-long',
          code: 'email-too-long',
          description: 'Not with ***.',
          error_description: 'Not with ***.',
          statusCode: 400,
        },
      ]);
    });

    it('creates nobody if the database fails, and enforces the password policy', async () => {
      const email = fresh();
      expect((await failing(() => signUp(email))).status).to.equal(503);
      expect((await signUp(email, { password: 'weak' })).json()).to.include({ code: 'invalid_password' });
      expect(await usersWith(email)).to.deep.equal([]);
      expect(legacy.users.has(email)).to.equal(false);
    });
  });

  describe('a link that verifies an address', () => {
    it('runs the verify script, and can be used again if that fails', async () => {
      const email = fresh();
      await signUp(email);
      const agent = createAgent(server);
      const page = await agent.get((await nextMessageTo(server, email)).link ?? '');
      const { action, fields } = readForm(page, 'ticket');
      const form = { ...fields, decision: 'verify' };
      expect((await failing(() => agent.request(action, { form }))).status).to.equal(503);
      expect((await usersWith(email))[0]?.email_verified).to.equal(false);
      expect((await agent.request(action, { form })).status).to.equal(200);
      expect(legacy.users.get(email)?.email_verified).to.equal(true);
      expect((await usersWith(email))[0]?.email_verified).to.equal(true);
    });

    it('also deletes the account there, if the owner of the address did not create it', async () => {
      const email = fresh();
      await signUp(email);
      const agent = createAgent(server);
      const page = await agent.get((await nextMessageTo(server, email)).link ?? '');
      const { action, fields } = readForm(page, 'ticket');
      expect((await agent.request(action, { form: { ...fields, decision: 'discard' } })).status).to.equal(
        200,
      );
      expect([legacy.users.has(email), (await usersWith(email)).length]).to.deep.equal([false, 0]);
    });
  });

  describe('a password reset by a link', () => {
    const resetForm = async (email: string, connection = 'users') => {
      const agent = createAgent(server);
      await agent.request('/dbconnections/change_password', { json: { connection, email } });
      const page = await agent.get((await nextMessageTo(server, email, 1, 'link')).link ?? '');
      const { action, fields } = readForm(page, 'password');
      return (password: string) => agent.request(action, { form: { ...fields, password, repeat: password } });
    };

    it('sets the password there, ends what the old one gave access to, and stores none here', async () => {
      const { email, id } = await someone({ email_verified: false });
      const before = await grant(email, OLD, 'users', 'openid offline_access');
      const reset = await resetForm(email);
      expect((await reset(NEW)).status).to.equal(200);
      expect((await grant(email, OLD)).status).to.equal(403);
      expect((await grant(email, NEW)).status).to.equal(200);
      const refreshed = await token(createAgent(server), {
        grant_type: 'refresh_token',
        client_id: 'web',
        client_secret: 'web-secret',
        refresh_token: before.json().refresh_token,
      });
      expect(refreshed.json().error).to.equal('invalid_grant');
      await noPassword(id);
      // The link came to the address, so the address is verified there, too.
      expect(legacy.users.get(email)?.email_verified).to.equal(true);
    });

    it('works for a user who never logged in here', async () => {
      const email = fresh();
      const { id } = legacy.add(email, OLD);
      expect((await (await resetForm(email))(NEW)).status).to.equal(200);
      expect(payload((await grant(email, NEW)).json().id_token).sub).to.equal(`auth0|${id}`);
    });

    it('does not set the password if the script fails, and uses up the link', async () => {
      const { email } = await someone();
      const reset = await resetForm(email);
      const failed = await failing(() => reset(NEW));
      expect([failed.status, failed.text.includes('ask for a new link')]).to.deep.equal([503, true]);
      expect(await eventSaying('fcp', 'not-changed')).to.include({ connection: 'users', user_name: email });
      await eventSaying('f', 'The change_password script failed: status 500 for ***');
      expect((await reset(NEW)).status).to.equal(400);
      expect((await grant(email, OLD)).status).to.equal(200);
    });

    it('moves a user here, for whom the database is not asked again', async () => {
      const email = fresh();
      const { id } = legacy.add(email, OLD);
      const reset = await resetForm(email, 'moving');
      // Until the reset the older password is valid.
      expect((await reset(NEW)).status).to.equal(200);
      const asked = legacy.seen.length;
      expect(payload((await grant(email, NEW, 'moving')).json().id_token).sub).to.equal(`auth0|${id}`);
      expect((await grant(email, OLD, 'moving')).status).to.equal(403);
      expect(legacy.seen.length).to.equal(asked);
    });

    it('keeps the older password of a user who requested a link and did not use it', async () => {
      const email = fresh();
      legacy.add(email, OLD);
      await resetForm(email, 'moving');
      expect((await grant(email, 'wrong', 'moving')).status).to.equal(403);
      expect((await grant(email, OLD, 'moving')).status).to.equal(200);
      expect((await usersWith(email)).length).to.equal(1);
    });

    it('looks up at most two users at once, so that logins can use the scripts', async () => {
      const waiting: { end(): unknown }[] = [];
      const asked = legacy.seen.length;
      legacy.misbehave = (response) => void waiting.push(response.writeHead(404));
      const addresses = Array.from({ length: 5 }, fresh);
      for (const email of addresses) {
        const json = { connection: 'moving', email };
        await createAgent(server).request('/dbconnections/change_password', { json });
      }
      for (const deadline = performance.now() + PATIENCE; performance.now() < deadline; ) {
        const { records } = await server.store.collection('logs').list({ limit: 1000 });
        const given = records.filter(
          (one) => one.description === 'it failed' && addresses.includes(one.user_name ?? ''),
        );
        if (given.length === 3 && waiting.length === 2) break;
        await aMoment();
      }
      expect(legacy.seen.length - asked).to.equal(2);
      legacy.misbehave = undefined;
      for (const response of waiting) response.end();
      expect(waiting).to.have.length(2);
    });

    it('is not offered for an unknown user, or without a script that sets passwords', async () => {
      const email = fresh();
      legacy.add(email, OLD);
      for (const [connection, address, why] of [
        ['users', fresh(), 'there is no such user'],
        ['login-only', email, 'there is no script change_password'],
      ] as const) {
        const asked = { json: { connection, email: address } };
        const answer = await createAgent(server).request('/dbconnections/change_password', asked);
        expect(answer.status).to.equal(200);
        await eventSaying('fcpr', why, address);
        expect(await messagesTo(server, address)).to.deep.equal([]);
      }
    });
  });

  describe('the Management API', () => {
    it('creates users there', async () => {
      const email = fresh();
      const body = {
        connection: 'users',
        email,
        password: NEW,
        app_metadata: { plan: 'gold' },
        blocked: true,
      };
      const created = await call('POST', '/users', body);
      expect(created.status, created.text).to.equal(201);
      expect(created.json()).to.deep.include({
        user_id: `auth0|${legacy.users.get(email)?.id}`,
        app_metadata: { plan: 'gold' },
        blocked: true,
      });
      await noPassword(created.json().user_id);
      expect((await call('POST', '/users', body)).status).to.equal(409);
      const failed = await failing(() => call('POST', '/users', { ...body, email: fresh() }));
      expect(failed.json()).to.include({ statusCode: 503, errorCode: 'temporarily_unavailable' });
    });

    it('rejects a user whom the database has, whether its users move or stay', async () => {
      for (const connection of ['users', 'moving']) {
        const email = fresh();
        legacy.add(email, OLD);
        const created = await call('POST', '/users', { connection, email, password: NEW });
        expect(created.status).to.equal(409);
      }
      const { path } = await someone({}, 'moving');
      const email = fresh();
      legacy.add(email, OLD);
      expect((await call('PATCH', path, { email })).json().message).to.match(/new email already exists/);
    });

    it('sets passwords there', async () => {
      const { email, path, id } = await someone();
      expect((await call('PATCH', path, { password: NEW })).status).to.equal(200);
      expect([(await grant(email, OLD)).status, (await grant(email, NEW)).status]).to.deep.equal([403, 200]);
      expect((await failing(() => call('PATCH', path, { password: 'Another-One-2' }))).status).to.equal(503);
      legacy.users.delete(email);
      expect((await call('PATCH', path, { password: 'Another-One-2' })).status).to.equal(503);
      await noPassword(id);
    });

    it('changes addresses there first', async () => {
      const { email, path } = await someone();
      const next = fresh();
      expect((await failing(() => call('PATCH', path, { email: next }))).status).to.equal(503);
      expect((await usersWith(email)).length).to.equal(1);
      const changed = await call('PATCH', path, { email: next, email_verified: true });
      expect(changed.json()).to.include({ email: next, email_verified: true });
      expect(legacy.users.get(next)).to.include({ email_verified: true });
      expect((await grant(next, OLD)).status).to.equal(200);
      expect((await grant(email, OLD)).status).to.equal(403);
      await call('PATCH', path, { email_verified: false });
      expect(legacy.users.get(next)).to.include({ email_verified: false });
      const other = await someone();
      expect((await call('PATCH', path, { email: other.email })).status).to.equal(400);
    });

    it('accepts an address that was changed there before', async () => {
      const { email, user, path } = await someone();
      const next = fresh();
      legacy.users.delete(email);
      legacy.users.set(next, { ...user, email: next });
      expect((await grant(next, OLD)).status).to.equal(403);
      const writes = legacy.writes.length;
      expect((await call('PATCH', path, { email: next })).status).to.equal(200);
      expect(legacy.writes.length).to.equal(writes);
      expect((await grant(next, OLD)).status).to.equal(200);
    });

    it('changes usernames there', async () => {
      const { path, user } = await someone({ username: `before${people}` }, 'named');
      expect((await call('PATCH', path, { username: `after${people}` })).status).to.equal(200);
      expect([...legacy.users.values()].find(({ id }) => id === user.id)?.username).to.equal(
        `after${people}`,
      );
      expect((await grant(`after${people}`, OLD, 'named')).status).to.equal(200);
    });

    it('rejects changes of members that each login overwrites', async () => {
      const { path } = await someone();
      expect((await call('PATCH', path, { name: 'Another' })).json().message).to.match(
        /cannot be updated: name/,
      );
      expect((await call('PATCH', path, { user_metadata: { a: 1 }, blocked: true })).status).to.equal(200);
    });

    it('removes users there, and keeps a user whom the script could not remove', async () => {
      const { email, path, user } = await someone();
      expect((await failing(() => call('DELETE', path))).status).to.equal(503);
      expect((await call('GET', path)).status).to.equal(200);
      expect((await call('DELETE', path)).status).to.equal(204);
      expect(legacy.writes.at(-1)?.[0]).to.equal(`DELETE /users/${user.id}`);
      expect([legacy.users.has(email), (await call('GET', path)).status]).to.deep.equal([false, 404]);
    });

    it('does not remove users who have moved here from the custom database', async () => {
      const { email, path } = await someone({}, 'moving');
      expect((await call('DELETE', path)).status).to.equal(204);
      expect(legacy.users.has(email)).to.equal(true);
    });

    it('issues tickets for a user who never logged in here', async () => {
      const email = fresh();
      legacy.add(email, OLD);
      const { records } = await server.store.collection('connections').list({ limit: 100 });
      const idOf = (name: string) => records.find((one) => one.name === name)?.id;
      const ticket = (connection: string) =>
        call('POST', '/tickets/password-change', { email, connection_id: idOf(connection) });
      expect((await ticket('moving')).status).to.equal(201);
      expect((await ticket('login-only')).status).to.equal(404);
      const { id } = await someone({}, 'login-only');
      const refused = await call('POST', '/tickets/password-change', { user_id: id });
      expect(refused.json().message).to.match(/not kept here/);
    });
  });

  it('set one password if several tickets are used at the same time', async () => {
    const { email, id } = await someone();
    const forms = await Promise.all(
      [1, 2, 3].map(async (i) => {
        const created = await call('POST', '/tickets/password-change', { user_id: id });
        return { password: `Racing-Horse-${i}`, submit: await resetForm(server, created.json().ticket) };
      }),
    );
    const ends = await Promise.all(forms.map(({ password, submit }) => submit(password)));
    expect(ends.map(({ status }) => status).sort()).to.deep.equal([200, 400, 400]);
    const winner = forms[ends.findIndex(({ status }) => status === 200)]?.password;
    expect((await grant(email, winner ?? '')).status).to.equal(200);
  });

  it('set the password of the identity in the custom database after it was linked to another user', async () => {
    const [primary, other] = [await someone({}, 'moving'), await someone()];
    const [, upstreamId] = other.id.split('|');
    const linked = await call('POST', `${primary.path}/identities`, {
      provider: 'auth0',
      user_id: upstreamId,
    });
    expect(linked.status, linked.text).to.equal(201);
    const subject = async (email: string, password: string, realm: string) =>
      payload((await grant(email, password, realm)).json().id_token).sub;
    legacy.users.set(other.email, { ...other.user, name: 'Another Name' });
    expect(await subject(other.email, OLD, 'users')).to.equal(primary.id);
    expect((await server.store.collection('users').get(primary.id))?.name).not.to.equal('Another Name');
    const agent = createAgent(server);
    await agent.request('/dbconnections/change_password', {
      json: { connection: 'users', email: other.email },
    });
    const page = await agent.get((await nextMessageTo(server, other.email, 1, 'link')).link ?? '');
    const { action, fields } = readForm(page, 'password');
    expect(
      (await agent.request(action, { form: { ...fields, password: NEW, repeat: NEW } })).status,
    ).to.equal(200);
    expect((await grant(other.email, OLD)).status).to.equal(403);
    expect(await subject(other.email, NEW, 'users')).to.equal(primary.id);
    // The primary user's own password is a different one, and stored here.
    expect(await subject(primary.email, OLD, 'moving')).to.equal(primary.id);
    expect((await call('DELETE', primary.path)).status).to.equal(204);
    expect([legacy.users.has(other.email), legacy.users.has(primary.email)]).to.deep.equal([false, true]);
  });

  it('are not offered, and rejected, if there are no scripts for them', async () => {
    const email = fresh();
    expect((await signUp(email, { connection: 'login-only' })).json()).to.deep.equal({
      error: 'public signup is disabled',
      error_description: 'public signup is disabled',
    });
    const created = await call('POST', '/users', { connection: 'login-only', email, password: NEW });
    expect(created.json().message).to.equal('Users of this connection are made elsewhere.');
    const agent = createAgent(server);
    const page = await follow(
      agent,
      await authorize(agent, webRequest({ connection: 'login-only' })),
      server.url,
    );
    expect(page.text).not.to.contain('/signup').and.not.to.contain('/forgot-password');
    const someoneThere = await someone({}, 'login-only');
    const passwords = await call('PATCH', someoneThere.path, { password: NEW });
    expect(passwords.json().message).to.match(/Cannot change password/);
    expect((await call('DELETE', someoneThere.path)).status).to.equal(204);
    expect(legacy.users.has(someoneThere.email)).to.equal(true);
  });

  it('are rejected for an import', async () => {
    const { records } = await server.store.collection('connections').list({ limit: 100 });
    const form = new FormData();
    form.set('connection_id', records.find(({ name }) => name === 'users')?.id ?? '');
    form.set('users', new Blob(['[]'], { type: 'application/json' }), 'users.json');
    const answer = await fetch(`${server.url}/api/v2/jobs/users-imports`, {
      method: 'POST',
      headers: { authorization: `Bearer ${await managementToken(server)}` },
      body: form,
    });
    expect([answer.status, ((await answer.json()) as { message: string }).message]).to.deep.equal([
      400,
      'The users of the connection are kept elsewhere',
    ]);
  });
});
