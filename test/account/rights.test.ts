// Who may change authentication methods: not another user, not after the token has ended, and not with an old
// login.
import { expect } from 'chai';
import { codeOf } from '../factors/tenant.ts';
import { type Agent, createAgent } from '../support/agent.ts';
import {
  API,
  accessTokenOf,
  authorize,
  logIn,
  responseOf,
  token,
  USER,
  webRequest,
} from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { callsOf, SCOPES, tenant } from './tenant.ts';

const METHODS = 'authentication-methods';

describe('access to the My Account API', () => {
  let server: TestServer;
  let calls: ReturnType<typeof callsOf>;
  let people = 20;
  before(async () => {
    server = await startServer({ tenant });
    calls = callsOf(server);
  });
  after(() => server.stop());
  const someone = () => `mfa-${people++}@example.test`;
  const idOf = async (email: string) => (await server.users.withEmail(email))[0]?.id ?? '';
  const statusOf = async (bearer: string) => (await calls.me(bearer, METHODS)).status;
  const wanted = () =>
    webRequest({ audience: calls.audience, scope: `openid offline_access ${SCOPES.join(' ')}` });
  /** Returns a token of the browser's session. */
  const ofSession = async (browser: Agent, more: Record<string, string> = {}) =>
    accessTokenOf(browser, responseOf(await authorize(browser, { ...wanted(), ...more })));
  const ofLogin = async (email: string) => {
    const browser = createAgent(server);
    const answer = await logIn(browser, server, wanted(), { email, password: USER.password });
    return { browser, bearer: await accessTokenOf(browser, responseOf(answer)) };
  };

  it('requires a token for this API with the scope of the call', async () => {
    const user = someone();
    expect((await calls.agent.get(`/me/v1/${METHODS}`)).status).to.equal(401);
    for (const audience of [API, `${server.issuer}mfa/`]) {
      const other = (await calls.login(user, { audience, scope: 'openid' })).json().access_token;
      const answer = await calls.me(other, METHODS);
      expect(answer.status, audience).to.equal(401);
      expect(answer.headers['www-authenticate']).to.include('error="invalid_token"');
    }
    const reading = await calls.accountToken(user, { scope: `read:me:${METHODS.replace('-', '_')}` });
    expect(await statusOf(reading)).to.equal(200);
    for (const [path, json, method] of [
      [METHODS, { type: 'totp' }, 'POST'],
      [`${METHODS}/x/verify`, { auth_session: 'x' }, 'POST'],
      [`${METHODS}/x`, { name: 'x' }, 'PATCH'],
      [`${METHODS}/x`, undefined, 'DELETE'],
      ['factors', undefined, 'GET'],
    ] as const) {
      const answer = await calls.me(reading, path, json, method);
      expect(answer.status, path).to.equal(403);
      expect(answer.headers['www-authenticate']).to.include('error="insufficient_scope"');
    }
  });

  it('is limited to applications with a client grant, and to the granted scopes', async () => {
    const request = { audience: calls.audience, scope: SCOPES.join(' ') };
    const browser = createAgent(server);
    const refused = await authorize(browser, { ...webRequest(request), client_id: 'code-only' });
    expect(responseOf(refused)).to.include({ error: 'access_denied' });
    const machine = await calls.token({ grant_type: 'client_credentials', audience: calls.audience });
    expect(machine.json().error).to.equal('access_denied');
    const user = someone();
    const bearer = await calls.accountToken(user);
    const [grant] = await server.store
      .collection('clientGrants')
      .list({ limit: 100 })
      .then(({ records }) =>
        records.filter(({ client_id, audience }) => client_id === 'web' && audience === calls.audience),
      );
    await server.store.collection('clientGrants').update(String(grant?.id), (now) => ({
      ...now,
      scope: ['read:me:factors'],
    }));
    const less = await calls.login(user, request);
    expect(less.json().scope).to.equal('read:me:factors');
    await server.store
      .collection('clientGrants')
      .update(String(grant?.id), (now) => ({ ...now, scope: SCOPES }));
    expect(await statusOf(bearer)).to.equal(200);
  });

  it("does not reach another user's methods, which are answered with 404", async () => {
    const [owner, other] = [await calls.accountToken(someone()), await calls.accountToken(someone())];
    const { verify, authn_response } = await calls.beginPasskey(owner);
    const { id } = (await verify({ authn_response })).json();
    const { begun } = await calls.begin(owner, { type: 'totp' });
    for (const one of [id, begun.id]) {
      const path = `${METHODS}/${encodeURIComponent(one)}`;
      expect((await calls.me(other, path)).status).to.equal(404);
      expect((await calls.me(other, path, { name: 'mine' }, 'PATCH')).status).to.equal(404);
      expect((await calls.me(other, path, undefined, 'DELETE')).status).to.equal(404);
    }
    const proof = { auth_session: begun.auth_session, otp_code: codeOf(begun.manual_input_code) };
    const stolen = await calls.me(other, `${METHODS}/${encodeURIComponent(begun.id)}/verify`, proof);
    expect([stolen.status, stolen.json().type]).to.deep.equal([400, 'urn:gatehouse:error:invalid_grant']);
  });

  it('accepts an auth_session once, for ten minutes, for its own login, application and method', async () => {
    const user = someone();
    const bearer = await calls.accountToken(user);
    const passkey = await calls.beginPasskey(bearer);
    const proof = { authn_response: passkey.authn_response };
    const elsewhere = await calls.accountToken(user, {}, 'leeway');
    expect((await passkey.verify(proof, elsewhere)).status, 'another application').to.equal(400);
    const again = await calls.beginPasskey(bearer);
    const answers = await Promise.all(
      Array.from({ length: 50 }, () => again.verify({ authn_response: again.authn_response })),
    );
    expect(answers.map(({ status }) => status).sort()).to.deep.equal([201, ...Array(49).fill(400)]);
    const totp = await calls.begin(bearer, { type: 'totp' });
    const second = await calls.begin(await calls.accountToken(user), { type: 'totp' });
    const otp_code = codeOf(totp.begun.manual_input_code);
    for (const [answer, why] of [
      [await second.verify({ otp_code }), 'the code of another'],
      [
        await totp.verify({ otp_code, auth_session: second.begun.auth_session }),
        'the session of another login',
      ],
      [await totp.verify({ otp_code, auth_session: 'x' }), 'no session'],
    ] as const)
      expect(answer.json(), why).to.include({ type: 'urn:gatehouse:error:invalid_grant' });
    expect((await totp.verify({ otp_code })).status).to.equal(201);
    expect((await totp.verify({ otp_code })).status, 'replayed').to.be.oneOf([400, 401]);
    const late = await calls.beginPasskey(await calls.accountToken(someone()));
    server.tick(601_000);
    expect((await late.verify({ authn_response: late.authn_response })).status).to.equal(401);
  });

  it('does not accept an auth_session of an enrolment for a login', async () => {
    const { begun, authn_response } = await calls.beginPasskey(await calls.accountToken(someone()));
    const answer = await calls.token({
      grant_type: 'urn:okta:params:oauth:grant-type:webauthn',
      auth_session: begun.auth_session,
      authn_response,
    });
    expect(answer.status, answer.text).to.be.within(400, 403);
  });

  it('requires a fresh login for each change, and rejects an old session and its refresh token', async () => {
    const email = someone();
    const { browser, bearer } = await ofLogin(email);
    const { id } = (
      await (async () => {
        const { verify, authn_response } = await calls.beginPasskey(bearer);
        return verify({ authn_response });
      })()
    ).json();
    server.tick(601_000);
    const old = await ofSession(browser);
    expect(await statusOf(old), 'to look at it').to.equal(200);
    for (const answer of [
      await calls.me(old, METHODS, { type: 'passkey' }),
      await calls.me(old, METHODS, { type: 'totp' }),
      await calls.me(old, `${METHODS}/${encodeURIComponent(id)}`, undefined, 'DELETE'),
    ]) {
      expect(answer.status, answer.text).to.equal(401);
      expect(answer.json()).to.include({ max_age: 600 });
      expect(answer.headers['www-authenticate']).to.include('error="insufficient_user_authentication"');
      expect(answer.headers['www-authenticate']).to.include('max_age="600"');
    }
    const request = { ...wanted(), max_age: '600' };
    const again = await logIn(browser, server, request, { email, password: USER.password });
    const fresh = await accessTokenOf(browser, responseOf(again));
    expect((await calls.me(fresh, METHODS, { type: 'totp' })).status).to.equal(201);
  });

  it("ends with the session, the password, the user's block, and the application", async () => {
    const { browser, bearer } = await ofLogin(someone());
    expect(await statusOf(bearer)).to.equal(200);
    await browser.get('/v2/logout?client_id=web');
    expect(await statusOf(bearer), 'logged out').to.equal(401);
    const email = someone();
    const [one, two] = [await calls.accountToken(email), await ofLogin(email)];
    const started = await calls.beginPasskey(one);
    await server.users.setPassword(await idOf(email), 'Entirely-New-Words-7');
    expect((await started.verify({ authn_response: started.authn_response })).status).to.equal(401);
    expect(await statusOf(one), 'another password').to.equal(401);
    expect(await statusOf(two.bearer)).to.equal(401);
    const blocked = someone();
    const theirs = await calls.accountToken(blocked);
    await server.users.update(await idOf(blocked), { blocked: true });
    expect(await statusOf(theirs), 'blocked').to.equal(401);
  });

  it('is denied to a session from before second factors were changed by another one', async () => {
    const email = someone();
    const thief = await ofLogin(email);
    const owner = await ofLogin(email);
    const waiting = await calls.beginPasskey(thief.bearer);
    const totp = await calls.begin(owner.bearer, { type: 'totp' });
    const otp_code = codeOf(totp.begun.manual_input_code);
    expect((await totp.verify({ otp_code })).status).to.equal(201);
    expect((await waiting.verify({ authn_response: waiting.authn_response })).status).to.equal(401);
    expect((await calls.me(thief.bearer, METHODS, { type: 'passkey' })).status).to.equal(401);
    const path = `${METHODS}/${encodeURIComponent(totp.begun.id)}`;
    expect((await calls.me(thief.bearer, path, undefined, 'DELETE')).status).to.equal(401);
    const { records } = await server.store.collection('passkeys').list({ limit: 1000 });
    const id = await idOf(email);
    expect(records.filter(({ user_id }) => user_id === id)).to.deep.equal([]);
  });

  it('allows no change by a refresh token once its login is old', async () => {
    const email = someone();
    const answer = await calls.login(email, {
      audience: calls.audience,
      scope: `offline_access ${SCOPES.join(' ')}`,
    });
    const { refresh_token } = answer.json();
    server.tick(601_000);
    const renewed = await token(createAgent(server), {
      grant_type: 'refresh_token',
      client_id: 'web',
      client_secret: 'web-secret',
      refresh_token,
    });
    const bearer = renewed.json().access_token;
    expect(await statusOf(bearer)).to.equal(200);
    expect((await calls.me(bearer, METHODS, { type: 'totp' })).json()).to.include({ max_age: 600 });
  });
});
