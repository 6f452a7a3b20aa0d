// Actions of custom-token-exchange: they name the user of a foreign token, or reject it.
import { expect } from 'chai';
import { SignJWT } from 'jose';
import { tenant as base } from '../factors/tenant.ts';
import { startManaged } from '../management/support.ts';
import { createAgent } from '../support/agent.ts';
import { addAdministrators, addressOf } from '../support/console.ts';
import { API, PASSWORD_REQUEST, payload, USER } from '../support/flows.ts';
import { nextMessageTo } from '../support/inbox.ts';
import type { TestServer } from '../support/server.ts';
import { actionFailures, bindActions, eventsOf, managed, printed } from './support.ts';

const GRANT = 'urn:ietf:params:oauth:grant-type:token-exchange';
const TYPE = 'urn:acme:legacy-token';
const ID_TOKEN = 'urn:ietf:params:oauth:token-type:id_token';
const TRIGGER = 'custom-token-exchange';
const { guardianPolicies: _everybody, ...rest } = base;
const tenant = {
  ...rest,
  attackProtection: { ...rest.attackProtection, suspiciousIpThrottling: {} },
  clients: rest.clients.map((client) =>
    ['web', 'spa', 'third'].includes(client.client_id)
      ? {
          ...client,
          grant_types: [...client.grant_types, 'refresh_token'],
          token_exchange: { allow_any_profile_of_type: ['custom_authentication'] },
        }
      : client,
  ),
};

/** As operators write it: a token of the old system is `good:<id>`. */
const judge = (then: string) => `exports.onExecuteCustomTokenExchange = async (event, api) => {
  console.log('judges ' + event.transaction.subject_token + ' of ' + event.transaction.subject_token_type);
  const [word, id] = event.transaction.subject_token.split(':');
  if (word !== 'good') return api.access.rejectInvalidSubjectToken('The token is not one of ours.');
  ${then}
};`;
const BY_CONNECTION = (creationBehavior: string, updateBehavior: string) =>
  `api.authentication.setUserByConnection('users', JSON.parse(Buffer.from(id, 'base64url').toString()),
     { creationBehavior: '${creationBehavior}', updateBehavior: '${updateBehavior}' });`;
const tokenOf = (user: object) => `good:${Buffer.from(JSON.stringify(user)).toString('base64url')}`;

describe('actions of custom-token-exchange', () => {
  let server: TestServer;
  let made = 0;
  beforeEach(async () => {
    server = await startManaged(tenant);
  });
  afterEach(() => server.stop());

  const profile = async (code: string, more: object = {}) => {
    const action = await managed(server, 'POST', '/actions/actions', {
      name: `exchange ${++made}`,
      code,
      supported_triggers: [{ id: TRIGGER, version: 'v1' }],
    });
    expect(action.status, JSON.stringify(action.body)).to.equal(201);
    await managed(server, 'POST', `/actions/actions/${action.body.id}/deploy`);
    const answer = await managed(server, 'POST', '/token-exchange-profiles', {
      name: `profile ${made}`,
      subject_token_type: TYPE,
      action_id: action.body.id,
      type: 'custom_authentication',
      ...more,
    });
    expect(answer.status, JSON.stringify(answer.body)).to.equal(201);
    return { profileId: answer.body.id as string, actionId: action.body.id as string };
  };
  it('read the parameters of the application in event.request.body, and no credential of it', async () => {
    await profile(
      judge(`console.log(JSON.stringify(event.request.body)); api.authentication.setUserById(id);`),
    );
    const own = { device_name: 'Phone', promo_code: 'x', 'ext-region': 'north' };
    const secrets = {
      api_key: 'k',
      otp: '1',
      mfa_token: 't',
      password: 'p',
      client_assertion: '',
      code_verifier: 'v',
      gatehouse_notes: '{}',
    };
    await exchange('good:nobody', { ...own, ...secrets });
    const lines = (await printed(server, 'promo_code')).split('\n');
    const body = JSON.parse(lines.find((line) => line.includes('promo_code')) ?? '');
    expect(body).to.include({ ...own, client_id: 'web', subject_token_type: TYPE });
    expect(body).not.to.have.any.keys('client_secret', 'subject_token', ...Object.keys(secrets));
  });

  const exchange = async (subject_token: string, over: Record<string, string> = {}) => {
    const answer = await createAgent(server).request('/oauth/token', {
      json: {
        grant_type: GRANT,
        client_id: 'web',
        client_secret: 'web-secret',
        subject_token,
        subject_token_type: TYPE,
        scope: 'openid profile email offline_access',
        audience: API,
        ...over,
      },
    });
    return { status: answer.status, body: answer.json() };
  };
  const ada = async () => (await server.users.findInConnection({ name: 'users' }, USER.email))?.id ?? '';
  const failed = async () => (await eventsOf(server, 'fecte')).map(({ description }) => description);

  it('log a user in, with the tokens, the actions and the events of every login', async () => {
    await profile(judge('api.authentication.setUserById(id); api.user.setAppMetadata("legacy", true);'));
    await bindActions(server, 'post-login', {
      code: `exports.onExecutePostLogin = async (event, api) => {
        api.accessToken.setCustomClaim('https://example.test/by', event.transaction.protocol);
        api.idToken.setCustomClaim('https://example.test/legacy', event.user.app_metadata.legacy);
      };`,
    });
    const id = await ada();
    const { status, body } = await exchange(`good:${id}`);
    expect(status, JSON.stringify(body)).to.equal(200);
    expect(body).to.include({
      token_type: 'Bearer',
      issued_token_type: 'urn:ietf:params:oauth:token-type:access_token',
    });
    expect(body).to.have.property('refresh_token');
    expect(payload(body.access_token)).to.deep.include({
      sub: id,
      'https://example.test/by': 'oauth2-token-exchange',
    });
    expect(payload(body.id_token)).to.include({
      sub: id,
      email: USER.email,
      'https://example.test/legacy': true,
    });
    expect((await eventsOf(server, 'secte'))[0]).to.include({ user_id: id, client_id: 'web' });
    expect((await eventsOf(server, 's')).length).to.equal(1);
    expect((await eventsOf(server, 'sens')).length).to.equal(0);
    // A public client, too.
    const open = await exchange(`good:${id}`, { client_id: 'spa', client_secret: '' });
    expect(open.status, JSON.stringify(open.body)).to.equal(200);
  });

  it('pass the type of the exchange and the actor to actions of the login', async () => {
    await profile(
      judge(
        "api.authentication.setUserById(id); api.authentication.setActor({ sub: 'agent-7', desk: 'north' });",
      ),
    );
    await bindActions(server, 'post-login', {
      code: `exports.onExecutePostLogin = async ({ transaction }, api) => {
        api.accessToken.setCustomClaim('https://example.test/exchange', transaction);
      };`,
    });
    const token = `good:${await ada()}`;
    const { body } = await exchange(token, {
      actor_token: 'of-the-agent',
      actor_token_type: 'urn:example:agent',
    });
    const told = payload(body.access_token)['https://example.test/exchange'];
    expect(told).to.deep.include({
      protocol: 'oauth2-token-exchange',
      subject_token_type: TYPE,
      actor_token_type: 'urn:example:agent',
      actor: { sub: 'agent-7', desk: 'north' },
    });
    // The tokens themselves are only for the action that judges them.
    expect(JSON.stringify(told)).not.to.include('of-the-agent').and.not.include(token);
  });

  it("get the user of an actor's ID token, and none for a token that does not prove one", async () => {
    await profile(
      judge(`api.authentication.setUserById(id);
        const { actor_token_user: user } = event.transaction;
        if (user) api.authentication.setActor({ sub: user.user_id, mail: user.email, of: user.identities[0].connection, has: JSON.stringify([user.enrolledFactors, user.multifactor]) });`),
    );
    const logIn = async (client_id: string) => {
      const answer = await createAgent(server).request('/oauth/token', {
        json: {
          grant_type: 'password',
          client_id,
          client_secret: `${client_id}-secret`,
          username: USER.email,
          password: USER.password,
          scope: 'openid',
        },
      });
      expect(answer.status, answer.text).to.equal(200);
      return answer.json() as { id_token: string; access_token: string };
    };
    const id = await ada();
    const staff = (await server.users.findInConnection({ name: 'staff' }, 'staff@example.test'))?.id ?? '';
    const actorOf = async (actor_token: string, actor_token_type = ID_TOKEN) => {
      const over = { scope: 'openid', actor_token, actor_token_type };
      const { status, body } = await exchange(`good:${staff}`, over);
      expect(status, JSON.stringify(body)).to.equal(200);
      return payload(body.access_token).act;
    };
    const good = await logIn('web');
    const act = { sub: id, mail: USER.email, of: 'users', has: '[[{"type":"email"}],[]]' };
    expect(await actorOf(good.id_token)).to.deep.equal(act);
    const factor = { type: 'totp', name: 'app', totp_secret: 'JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP' };
    const enrolled = await managed(server, 'POST', `/users/${id}/authentication-methods`, factor);
    expect(enrolled.status, JSON.stringify(enrolled.body)).to.equal(201);
    act.has = '[[{"type":"otp"},{"type":"email"}],[]]';
    expect(await actorOf(good.id_token), 'who has a second factor').to.deep.equal(act);
    expect(await actorOf((await logIn('leeway')).id_token), 'of another application').to.deep.equal(act);

    const [head, body, signature] = good.id_token.split('.') as [string, string, string];
    const written = (claims: object) =>
      `${head}.${Buffer.from(JSON.stringify({ ...payload(good.id_token), ...claims })).toString('base64url')}.${signature}`;
    const none = Buffer.from(JSON.stringify({ alg: 'none', typ: 'JWT' })).toString('base64url');
    const forged = await new SignJWT({ ...payload(good.id_token), aud: 'hs256' })
      .setProtectedHeader({ alg: 'HS256', typ: 'JWT' })
      .sign(new TextEncoder().encode('a-secret-of-at-least-32-characters!'));
    const acted = await exchange(`good:${staff}`, {
      scope: 'openid',
      actor_token: good.id_token,
      actor_token_type: ID_TOKEN,
    });
    for (const [what, bad] of Object.entries({
      'of another user by hand': written({ sub: 'auth0|other' }),
      'of another issuer': written({ iss: 'https://other.example.test/' }),
      'without a signature': `${none}.${body}.`,
      'that an application signed': forged,
      'of a user for whom somebody acts': acted.body.id_token,
      'that is an access token': good.access_token,
      'that is none': 'x',
    }))
      expect(await actorOf(bad), what).to.equal(undefined);
    expect(await actorOf(good.id_token, 'urn:acme:id_token'), 'of another type').to.equal(undefined);

    const { id_token } = await logIn('leeway');
    await managed(server, 'PATCH', '/clients/leeway', { is_first_party: false });
    expect(await actorOf(id_token), 'of a third party').to.equal(undefined);
    server.tick(11 * 3600 * 1000);
    expect(await actorOf(good.id_token), 'that has expired').to.equal(undefined);
    const before = (await logIn('web')).id_token;
    const last_password_reset = new Date((payload(before).iat + 1) * 1000).toISOString();
    await server.users.update(id, { last_password_reset });
    expect(await actorOf(before), 'of before a new password').to.equal(undefined);
    server.tick(2000);
    const last = (await logIn('web')).id_token;
    expect(await actorOf(last), 'of after it').to.deep.equal(act);
    await server.users.update(id, { blocked: true });
    expect(await actorOf(last), 'of a user who is blocked').to.equal(undefined);
    await server.users.remove(id);
    expect(await actorOf(last), 'of a user who is deleted').to.equal(undefined);
  });

  it('cannot name, read or change administrators', async () => {
    await addAdministrators(server);
    const [owner] = await server.administrators.withEmail(addressOf('owner'));
    await profile(judge('api.authentication.setUserById(id); api.user.setAppMetadata("legacy", true);'));
    const answer = await exchange(`good:${owner?.id}`);
    expect(answer).to.deep.equal(await exchange('good:nobody'));
    expect(answer.status).to.equal(400);
    expect(await server.administrators.get(owner?.id ?? '')).to.deep.equal(owner);
  });

  it('set the actor in every token, and none is issued without it', async () => {
    const act = { sub: 'auth0|agent', role: 'support', act: { sub: 'service|1', level: 2 } };
    await profile(
      judge(`api.authentication.setUserById(id); api.authentication.setActor(${JSON.stringify(act)});`),
    );
    const { status, body } = await exchange(`good:${await ada()}`);
    expect(status, JSON.stringify(body)).to.equal(200);
    expect(body).not.to.have.property('refresh_token');
    expect(payload(body.access_token).act).to.deep.equal(act);
    expect(payload(body.id_token).act).to.deep.equal(act);
    const { body: plain } = await exchange(`good:${await ada()}`, { scope: 'openid' });
    expect(payload(plain.id_token)).to.have.property('act');
  });

  it('give an ID token that links no account (`link_with`), with an actor or without: its user was not there', async () => {
    const actor = `if (event.request.body['ext-acting'] === 'yes') api.authentication.setActor({ sub: 'agent-7' });`;
    await profile(judge(`api.authentication.setUserById(id); ${actor}`));
    const someone = async (email: string) => {
      const { body } = await managed(server, 'POST', '/users', {
        connection: 'users',
        email,
        password: USER.password,
        email_verified: true,
      });
      return body.user_id as string;
    };
    const [first, second] = [await someone('first@link.test'), await someone('second@link.test')];
    const idToken = async (acting: string) =>
      (await exchange(`good:${second}`, { scope: 'openid', 'ext-acting': acting })).body.id_token as string;
    const link = async (link_with: string) =>
      managed(server, 'POST', `/users/${encodeURIComponent(first)}/identities`, { link_with });
    const acted = await idToken('yes');
    expect(payload(acted).act).to.deep.equal({ sub: 'agent-7' });
    for (const one of [acted, await idToken('no')]) {
      const refused = await link(one);
      expect(refused.status).to.equal(400);
      expect(refused.body.message).to.match(/^Invalid id token on link_with property: .*prompt=login/);
    }
  });

  it('that name an invalid actor, or a chain that is too long, give no token', async () => {
    const chain = (levels: number): object => ({
      sub: `a${levels}`,
      ...(levels > 1 && { act: chain(levels - 1) }),
    });
    await profile(
      judge(
        'api.authentication.setUserById(id); api.authentication.setActor(event.transaction.requested_scopes[0] === "openid" ? JSON.parse(event.request.body["ext-actor"]) : {});',
      ),
    );
    const id = await ada();
    const as = (actor: unknown) =>
      exchange(`good:${id}`, { scope: 'openid', 'ext-actor': JSON.stringify(actor) });
    expect((await as(chain(5))).status).to.equal(200);
    for (const actor of [
      {},
      { sub: 1 },
      'x',
      chain(6),
      { sub: 'x', list: [] },
      { sub: 'x', a: 1, b: 1, c: 1, d: 1, e: 1, f: 1 },
    ])
      expect((await as(actor)).body, JSON.stringify(actor)).to.include({ error: 'access_denied' });
  });

  it('get the token in their event, and no log has it', async () => {
    const secret = 'good:auth0|nobody-9a81';
    await profile(judge('throw new Error("cannot judge " + event.transaction.subject_token);'));
    const { status, body } = await exchange(secret);
    expect([status, body.error]).to.deep.equal([403, 'access_denied']);
    expect(await printed(server)).to.contain(`judges *** of ${TYPE}`);
    expect((await actionFailures(server)).join()).to.contain('cannot judge ***');
    expect(server.logged()).not.to.contain(secret);
    const { records } = await server.store.collection('logs').list({ limit: 1000 });
    expect(JSON.stringify(records)).not.to.contain('nobody-9a81');
  });

  it('reject an invalid token, and limit an address that sends too many', async () => {
    await profile(judge('api.authentication.setUserById(id);'));
    const id = await ada();
    for (let n = 0; n < 10; n++) {
      expect(await exchange(`bad:${n}`)).to.deep.equal({
        status: 400,
        body: { error: 'invalid_request', error_description: 'The token is not one of ours.' },
      });
    }
    const late = await exchange(`good:${id}`);
    expect([late.status, late.body.error]).to.deep.equal([429, 'too_many_attempts']);
    // Logins with passwords are counted separately.
    const login = await createAgent(server).request('/oauth/token', {
      json: {
        ...PASSWORD_REQUEST,
      },
    });
    expect(login.status, login.text).to.equal(200);
    server.tick(10 * 60_000);
    expect((await exchange(`good:${id}`)).status).to.equal(200);
    expect((await eventsOf(server, 'limit_mu')).length).to.equal(1);
  });

  it('cannot create a user with a name that nobody could sign up with', async () => {
    const named = { name: 'named', enabled_clients: ['web'], options: { requires_username: true } };
    const made = await managed(server, 'POST', '/connections', { ...named, strategy: 'auth0' });
    expect(made.status, JSON.stringify(made.body)).to.equal(201);
    await profile(judge(BY_CONNECTION('create_if_not_exists', 'none').replace("'users'", "'named'")));
    const as = (username: string) =>
      exchange(tokenOf({ user_id: 'n-1', email: 'named@example.test', username }));
    for (const bad of ['x'.repeat(16), 'with space', 'other@example.test'])
      expect((await as(bad)).body.error_description, bad).to.equal(
        'username cannot be set for this connection.',
      );
    const good = await as('x'.repeat(15));
    expect(good.status, JSON.stringify(good.body)).to.equal(200);
  });

  it('deny an exchange with their message, which does not count as an invalid token', async () => {
    await profile(
      judge(`api.authentication.setUserById(id); api.access.deny('no_contract', 'There is no contract.');`),
    );
    const id = await ada();
    for (let n = 0; n < 12; n++) {
      expect(await exchange(`good:${id}`)).to.deep.equal({
        status: 400,
        body: { error: 'no_contract', error_description: 'There is no contract.' },
      });
    }
    expect(await failed()).to.have.length(12);
  });

  it('must name exactly one user, who exists and may log in', async () => {
    const id = await ada();
    const blocked = await server.users.findInConnection({ name: 'users' }, 'blocked@example.test');
    const { actionId } = await profile(judge(''));
    const change = async (then: string) => {
      await managed(server, 'PATCH', `/actions/actions/${actionId}`, { code: judge(then) });
      await managed(server, 'POST', `/actions/actions/${actionId}/deploy`);
    };
    expect((await exchange(`good:${id}`)).body.error).to.equal('invalid_request');
    await change('api.authentication.setUserById(id); api.authentication.setUserById(id);');
    expect((await exchange(`good:${id}`)).body.error).to.equal('invalid_request');
    await change('api.authentication.setUserById(id, "more"); api.user.setUserMetadata("seen", true);');
    expect((await exchange(`good:auth0|none`)).body).to.include({
      error_description: 'The user does not exist.',
    });
    const refused = await exchange(`good:${blocked?.id}`);
    expect([refused.status, refused.body]).to.deep.equal([
      403,
      { error: 'unauthorized', error_description: 'user is blocked' },
    ]);
    expect((await server.users.get(blocked?.id ?? ''))?.user_metadata).to.deep.equal({});
    // A call with wrong arguments is a failure: nobody is logged in by half a call.
    await change('api.authentication.setUserById({ id });');
    expect((await exchange(`good:${id}`)).status).to.equal(403);
    await change(`api.authentication.setUserByConnection('users', { user_id: 'x' }, {});`);
    expect((await exchange(`good:${id}`)).status).to.equal(403);
  });

  it('create a user of a database where they ask for it, of concurrent requests one', async () => {
    const { actionId } = await profile(judge(BY_CONNECTION('none', 'none')));
    const token = tokenOf({
      user_id: 'legacy-7',
      email: 'New@Example.test',
      given_name: 'Grace',
      app_metadata: { admin: true },
    });
    expect((await exchange(token)).body).to.include({
      error: 'invalid_request',
      error_description: 'The user does not exist.',
    });
    const code = judge(BY_CONNECTION('create_if_not_exists', 'none'));
    await managed(server, 'PATCH', `/actions/actions/${actionId}`, { code });
    await managed(server, 'POST', `/actions/actions/${actionId}/deploy`);
    const all = await Promise.all(Array.from({ length: 4 }, () => exchange(token)));
    for (const { status, body } of all) {
      expect(status, JSON.stringify(body)).to.equal(200);
      expect(payload(body.id_token)).to.include({
        sub: 'auth0|legacy-7',
        email: 'new@example.test',
        email_verified: false,
      });
    }
    const user = await server.users.get('auth0|legacy-7');
    expect(user).to.include({ given_name: 'Grace' }).and.deep.include({ app_metadata: {} });
    expect((await eventsOf(server, 'ss')).length).to.equal(1);
    await nextMessageTo(server, 'new@example.test', 1, 'link');
    // Another id does not take over an address that belongs to a user.
    const thief = await exchange(tokenOf({ user_id: 'legacy-8', email: USER.email }));
    expect(thief.body).to.deep.equal({
      error: 'invalid_request',
      error_description: 'The user already exists.',
    });
    for (const user_id of ['a|b', 'line\nbreak'])
      expect((await exchange(tokenOf({ user_id, email: 'x@example.test' }))).body.error).to.equal(
        'invalid_request',
      );
  });

  it('replace a profile, but no address', async () => {
    await profile(judge(BY_CONNECTION('create_if_not_exists', 'replace')));
    const user = { user_id: 'legacy-9', email: 'nine@example.test', email_verified: true };
    await exchange(tokenOf({ ...user, name: 'Nine', nickname: 'n' }));
    expect((await exchange(tokenOf({ ...user, name: 'Nine the Second' }))).status).to.equal(200);
    const kept = await server.users.get('auth0|legacy-9');
    expect(kept).to.include({ name: 'Nine the Second', email_verified: true });
    expect(kept?.nickname).to.equal(undefined);
    const moved = await exchange(tokenOf({ ...user, email: 'other@example.test' }));
    expect(moved.body.error_description).to.contain('email cannot be changed');
    expect((await server.users.get('auth0|legacy-9'))?.email).to.equal('nine@example.test');
  });

  it("name users of the application's connections only", async () => {
    await profile(
      judge(`const [connection, user_id] = id.split('/');
        api.authentication.setUserByConnection(connection, { user_id, email: 'a@example.test' },
          { creationBehavior: 'create_if_not_exists', updateBehavior: 'none' });`),
    );
    for (const name of ['nowhere', 'email', 'sms'])
      expect((await exchange(`good:${name}/1`)).body.error, name).to.equal('invalid_request');
    expect(
      (await exchange('good:staff/1', { client_id: 'spa', client_secret: '' })).body.error_description,
    ).to.contain('not enabled');
    const { body } = await exchange('good:elsewhere/1');
    expect(payload(body.access_token).sub).to.equal('google-oauth2|1');
  });

  it('are preceded by pre-user-registration for a new user', async () => {
    await profile(judge(BY_CONNECTION('create_if_not_exists', 'none')));
    await bindActions(server, 'pre-user-registration', {
      code: `exports.onExecutePreUserRegistration = async (event, api) => api.access.deny('no', 'Not here.');`,
    });
    const { status, body } = await exchange(tokenOf({ user_id: 'legacy-10', email: 'ten@example.test' }));
    expect([status, body]).to.deep.equal([403, { error: 'access_denied', error_description: 'Not here.' }]);
    expect(await server.users.get('auth0|legacy-10')).to.equal(undefined);
  });

  it('leave the second factor to the policy', async () => {
    await profile(judge('api.authentication.setUserById(id);'));
    await managed(server, 'PUT', '/guardian/policies', ['all-applications']);
    const { status, body } = await exchange(`good:${await ada()}`);
    expect([status, body.error]).to.deep.equal([403, 'mfa_required']);
    expect(body).to.have.property('mfa_token');
  });

  it('require an application that may exchange, and an existing type of token', async () => {
    const { profileId, actionId } = await profile(judge('api.authentication.setUserById(id);'));
    const token = `good:${await ada()}`;
    const other = await exchange(token, { client_id: 'leeway', client_secret: 'leeway-secret' });
    expect(other.status).to.be.oneOf([400, 403]);
    expect(other.body.error).to.equal('unauthorized_client');
    const third = await exchange(token, { client_id: 'third', client_secret: 'third-secret' });
    expect([third.status, third.body.error]).to.deep.equal([403, 'unauthorized_client']);
    expect(await printed(server)).to.equal('');
    expect((await exchange(token, { client_secret: 'wrong' })).status).to.equal(401);
    expect((await exchange(token, { subject_token_type: 'urn:acme:other' })).body.error).to.equal(
      'invalid_request',
    );
    expect(
      (await exchange(token, { requested_token_type: 'urn:ietf:params:oauth:token-type:id_token' })).body
        .error,
    ).to.equal('invalid_request');
    expect((await exchange('')).body.error).to.equal('invalid_request');
    // A draft is not run.
    await managed(server, 'PATCH', `/actions/actions/${actionId}`, {
      code: judge(`api.access.deny('a', 'b');`),
    });
    expect((await exchange(token)).status).to.equal(200);
    await managed(server, 'DELETE', `/token-exchange-profiles/${profileId}`);
    expect((await exchange(token)).body.error).to.equal('invalid_request');
  });

  it('require types of tokens that no standard has, and existing actions', async () => {
    const lost = { name: 'a', subject_token_type: TYPE, action_id: 'x', type: 'custom_authentication' };
    expect((await managed(server, 'POST', '/token-exchange-profiles', lost)).status).to.equal(400);
    const { actionId } = await profile(judge(''));
    for (const subject_token_type of [
      'urn:ietf:params:oauth:token-type:id_token',
      'URN:IETF:params:oauth:token-type:access_token',
      'https://auth0.com/token',
      'http://example.test/plain',
      'anything',
    ]) {
      const { status } = await managed(server, 'POST', '/token-exchange-profiles', {
        name: 'a',
        subject_token_type,
        action_id: actionId,
        type: 'custom_authentication',
      });
      expect(status, subject_token_type).to.equal(400);
    }
  });

  it('can be in the tenant file', async () => {
    await server.stop();
    server = await startManaged({
      ...tenant,
      actions: [
        {
          name: 'judge',
          code: judge('api.authentication.setUserById(id);'),
          supported_triggers: [{ id: TRIGGER, version: 'v1' }],
          deployed: true,
        },
      ],
      tokenExchangeProfiles: [
        { name: 'Legacy', subject_token_type: TYPE, action: 'judge', type: 'custom_authentication' },
      ],
    });
    expect((await exchange(`good:${await ada()}`)).status).to.equal(200);
    const { body } = await managed(server, 'GET', '/token-exchange-profiles');
    expect(body.token_exchange_profiles[0]).to.include({ name: 'Legacy', subject_token_type: TYPE });
  });
});
