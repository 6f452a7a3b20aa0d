// Actions of post-login: with every way to log in they run before there are tokens.
import { expect } from 'chai';
import { startManaged } from '../management/support.ts';
import { createAgent } from '../support/agent.ts';
import {
  API,
  authorize,
  tenant as base,
  follow,
  logIn,
  PASSWORD_REQUEST,
  payload,
  pkce,
  responseOf,
  spaRequest,
  spaTokens,
  token,
  USER,
  webRequest,
} from '../support/flows.ts';
import { PROTOCOL_CLAIMS } from '../support/protocol-claims.ts';
import type { TestServer } from '../support/server.ts';
import { actionFailures, bindActions, managed, postLogin } from './support.ts';

const NS = 'https://example.test/';
const TRIGGER = 'post-login';
const tenant = { ...base, users: [{ ...USER, email_verified: true, app_metadata: { plan: 'gold' } }] };

describe('actions of post-login', () => {
  let server: TestServer;
  beforeEach(async () => {
    server = await startManaged(tenant);
  });
  afterEach(() => server.stop());

  const bind = (...bodies: string[]) =>
    bindActions(server, TRIGGER, ...bodies.map((body) => ({ code: postLogin(body) })));
  const password = async () => {
    const answer = await token(createAgent(server), {
      ...PASSWORD_REQUEST,
      scope: 'openid offline_access',
      audience: API,
    });
    return { status: answer.status, body: answer.json() };
  };
  const refresh = async (refresh_token: string) => {
    const fields = { grant_type: 'refresh_token', client_id: 'spa', refresh_token };
    const answer = await token(createAgent(server), fields);
    return { status: answer.status, body: answer.json() };
  };
  const CLAIMS = `
    api.idToken.setCustomClaim('${NS}plan', event.user.app_metadata.plan);
    api.accessToken.setCustomClaim('${NS}by', event.transaction.protocol);`;

  it('set claims after a login in the browser, and again at a refresh', async () => {
    await bind(CLAIMS);
    const tokens = await spaTokens(createAgent(server), server, {
      scope: 'openid offline_access',
      audience: API,
    });
    expect(payload(tokens.id_token)).to.include({ [`${NS}plan`]: 'gold' });
    expect(payload(tokens.access_token)).to.include({ [`${NS}by`]: 'oidc-basic-profile' });
    await bind(`api.accessToken.setCustomClaim('${NS}by', event.transaction.protocol);`);
    const again = await refresh(tokens.refresh_token);
    expect(payload(again.body.access_token)).to.include({ [`${NS}by`]: 'oauth2-refresh-token' });
    expect(payload(again.body.id_token)).not.to.have.property(`${NS}plan`);
  });

  it('set claims of tokens of the password grant', async () => {
    await bind(CLAIMS);
    const { body } = await password();
    expect(payload(body.id_token)).to.include({ [`${NS}plan`]: 'gold' });
    expect(payload(body.access_token)).to.include({ [`${NS}by`]: 'oauth2-password' });
  });

  it('cannot set claims of the protocol', async () => {
    await bind(`for (const claim of ${JSON.stringify(PROTOCOL_CLAIMS)}) {
      api.idToken.setCustomClaim(claim, 'evil'); api.accessToken.setCustomClaim(claim, 'evil'); }
      api.idToken.setCustomClaim('email_verified', 'evil'); api.idToken.setCustomClaim('Email_Verified', 'evil');`);
    const { body } = await password();
    expect(JSON.stringify([payload(body.id_token), payload(body.access_token)])).not.to.contain('evil');
    const said = (await actionFailures(server)).join('\n');
    for (const claim of PROTOCOL_CLAIMS) expect(said).to.contain(`a claim: ${claim} `);
  });

  it('set as many claims as a token has room for, and further ones are left out and logged', async () => {
    const set = (name: string, length: number) =>
      `for (const of of [api.idToken, api.accessToken]) of.setCustomClaim('${NS}${name}', 'x'.repeat(${length}));`;
    await bind(set('first', 40_000), set('second', 48_000), set('third', 40_000), set('fourth', 10));
    const { body } = await password();
    for (const jwt of [body.id_token, body.access_token]) {
      const names = Object.keys(payload(jwt)).filter((name) => name.startsWith(NS));
      expect(names).to.deep.equal(['first', 'second', 'fourth'].map((name) => `${NS}${name}`));
    }
    expect((await actionFailures(server)).join()).to.contain(`${NS}third would make more than`);
  });

  it('fail with 403 and no effect when what they ask for is nested too deep', async () => {
    for (const call of [
      `api.idToken.setCustomClaim('${NS}deep', deep)`,
      `api.accessToken.setCustomClaim('${NS}deep', deep)`,
      `api.user.setUserMetadata('deep', deep)`,
    ]) {
      await bind(`let deep = []; for (let n = 0; n < 5000; n++) deep = [deep];
        api.user.setUserMetadata('flat', true); ${call};`);
      const { status, body } = await password();
      expect([status, body.error], call).to.deep.equal([403, 'access_denied']);
    }
    expect((await actionFailures(server)).join()).to.contain('nested too deep');
    const { records } = await server.store.collection('users').list({ limit: 10 });
    expect(records.map(({ user_metadata }) => user_metadata ?? {})).to.deep.equal([{}]);
    await bind(`let nested = 'end'; for (let n = 0; n < 90; n++) nested = [nested];
      api.idToken.setCustomClaim('${NS}nested', nested);`);
    const { body } = await password();
    expect(JSON.stringify(payload(body.id_token)[`${NS}nested`])).to.equal(
      `${'['.repeat(90)}"end"${']'.repeat(90)}`,
    );
  });

  it('may use any names for claims and metadata, without changing anything else', async () => {
    await bind(`for (const name of ['__proto__', 'constructor', 'toString', 's\u0443b'])
        for (const token of [api.idToken, api.accessToken]) token.setCustomClaim(name, { sub: 'evil', admin: true });
      api.user.setAppMetadata('__proto__', { plan: 'evil' });
      api.idToken.setCustomClaim('${NS}plan', event.user.app_metadata.plan);`);
    const { status, body } = await password();
    expect(status).to.equal(200);
    for (const jwt of [body.id_token, body.access_token]) {
      const claims = payload(jwt);
      expect(claims.sub).to.match(/^auth0\|/);
      expect(claims).not.to.have.nested.property('admin');
    }
    await bind(`api.idToken.setCustomClaim('${NS}plan', event.user.app_metadata.plan);`);
    expect(payload((await password()).body.id_token)[`${NS}plan`]).to.equal('gold');
  });

  it('cannot revoke the demand for a second factor of another action or of the tenant', async () => {
    await bind(`api.multifactor.enable('any');`, `api.multifactor.enable('none');`);
    const { status, body } = await password();
    expect({ status, error: body.error }).to.deep.equal({ status: 403, error: 'mfa_required' });
  });

  it('deny a login by password, in the browser, with an open session, and at a refresh', async () => {
    const agent = createAgent(server);
    const { refresh_token } = await spaTokens(agent, server, { scope: 'openid offline_access' });
    await bind(`api.access.deny('Not from ' + event.client.name + '.');`);
    const denied = { error: 'access_denied', error_description: 'Not from Single page.' };
    // The session of the browser answers without a login.
    const { challenge } = pkce();
    const open = await follow(agent, await authorize(agent, spaRequest(challenge)), server.url);
    expect(responseOf(open)).to.include(denied);
    const silent = await authorize(agent, spaRequest(challenge, { prompt: 'none' }));
    expect(responseOf(silent)).to.include(denied);
    expect(responseOf(await logIn(createAgent(server), server, spaRequest(challenge)))).to.include(denied);
    expect(await refresh(refresh_token)).to.deep.equal({ status: 403, body: denied });
    const { status, body } = await password();
    expect(status).to.equal(403);
    expect(body).to.deep.equal({ error: 'access_denied', error_description: 'Not from Web app.' });
    // The refresh token that was refused is not used up.
    await bind('');
    expect((await refresh(refresh_token)).status).to.equal(200);
  });

  it('refuse a login with a validation error, and get the roles of the user', async () => {
    const { body: made } = await managed(server, 'POST', '/roles', { name: 'Keeper', description: 'Keeps' });
    const { sub } = payload((await password()).body.id_token);
    await managed(server, 'POST', `/users/${encodeURIComponent(sub)}/roles`, { roles: [made.id] });
    await bind(`const { roles, next } = await api.roles.getUserEffectiveRoles({ take: 10 });
      const named = await api.roles.getUserEffectiveRolesByNames(['Keeper', 'Captain']);
      const known = await api.roles.getUserEffectiveRolesByIds(['${made.id}']);
      const none = await api.roles.getUserEffectiveRolesByIds(['rol_of_nobody']);
      api.idToken.setCustomClaim('${NS}roles', { roles, next, named, known, none });`);
    const roles = [{ id: made.id, name: 'Keeper', description: 'Keeps' }];
    expect(payload((await password()).body.id_token)[`${NS}roles`]).to.deep.equal({
      roles,
      named: { roles },
      known: { roles },
      none: { roles: [] },
    });
    await bind(`api.validation.error('no_country', 'Tell us your country first.');`);
    expect(await password()).to.deep.equal({
      status: 403,
      body: { error: 'access_denied', error_description: 'Tell us your country first.' },
    });
  });

  it('reveal no secret in what they refuse a login with', async () => {
    const refusing = async (body: string) => {
      const code = `exports.onExecutePostLogin = async (event, api) => { const { KEY } = event.secrets; ${body} };`;
      await bindActions(server, TRIGGER, { code, secrets: { KEY: 'a-secret-"of"-it', MODE: 'is' } });
      return (await password()).body.error_description;
    };
    expect(await refusing("api.access.deny('The key is ' + KEY);")).to.equal('The key is ***');
    expect(await refusing("api.validation.error('code', JSON.stringify({ KEY }));")).to.equal(
      '{"KEY":"***"}',
    );
    expect(await refusing("api.access.deny('x', encodeURIComponent(KEY));")).to.equal('***');
    const { records } = await server.store.collection('logs').list({ limit: 1000 });
    expect(JSON.stringify(records))
      .to.contain('The key is ***')
      .and.not.match(/a-secret-/);
  });

  it('end a login when they fail', async () => {
    await bind('event.nothing.deep;');
    expect((await password()).status).to.equal(403);
    const answer = responseOf(await logIn(createAgent(server), server, webRequest()));
    expect(answer).to.include({ error: 'access_denied' }).and.not.have.property('code');
  });

  it('store metadata at a first login, which the next action and the next login get', async () => {
    await bind(
      `if (event.user.app_metadata.since === undefined) api.user.setAppMetadata('since', event.stats.logins_count);
       api.user.setAppMetadata('plan', null); api.user.setUserMetadata('theme', { dark: true });`,
      `api.idToken.setCustomClaim('${NS}since', event.user.app_metadata.since);
       api.idToken.setCustomClaim('${NS}plan', event.user.app_metadata.plan ?? 'none');`,
    );
    const first = payload((await password()).body.id_token);
    const second = payload((await password()).body.id_token);
    expect(second[`${NS}since`]).to.equal(first[`${NS}since`]);
    expect(second[`${NS}plan`]).to.equal('none');
    const { body } = await managed(server, 'GET', `/users/${encodeURIComponent(first.sub)}`);
    expect(body.user_metadata).to.deep.equal({ theme: { dark: true } });
  });

  it('store at most so much metadata of a user, over any number of logins', async () => {
    const { id } = (await server.users.findInConnection({ name: 'users' }, USER.email)) ?? { id: '' };
    await server.users.update(id, {}, () => ({ app_metadata: { plan: 'x'.repeat(990_000) } }));
    await bind(`api.user.setAppMetadata('part' + Object.keys(event.user.app_metadata).length, 'x'.repeat(6000));
`);
    const parts = async () => {
      expect((await password()).status).to.equal(200);
      return Object.keys((await server.users.get(id))?.app_metadata ?? {});
    };
    expect(await parts()).to.deep.equal(['plan', 'part1']);
    expect(await actionFailures(server)).to.deep.equal([]);
    expect(await parts()).to.deep.equal(['plan', 'part1']);
    expect((await actionFailures(server)).join()).to.match(
      /^An action of post-login was refused app_metadata of more than 1000000 characters\.$/,
    );
  });

  it('store the metadata of concurrent logins, and keep what the Management API sets meanwhile', async () => {
    await bind(`const key = 'k' + Math.random();
      api.user.setAppMetadata(key, true); api.idToken.setCustomClaim('${NS}key', key);`);
    const { sub } = payload((await password()).body.id_token);
    const path = `/users/${encodeURIComponent(sub)}`;
    const [patched, ...logins] = await Promise.all([
      managed(server, 'PATCH', path, { app_metadata: { patched: true } }),
      ...Array.from({ length: 8 }, password),
    ]);
    expect(patched.status).to.equal(200);
    const keys = logins.map(({ body }) => payload(body.id_token)[`${NS}key`]);
    const { body } = await managed(server, 'GET', path);
    expect(body.app_metadata).to.include.all.keys('plan', 'patched', ...keys);
  });

  it('that ask for a second factor get one, or there are no tokens', async () => {
    await bind(`if (event.client.client_id === 'web') api.multifactor.enable('any');`);
    // The tenant has no factors, so nobody could give one.
    const none = responseOf(await logIn(createAgent(server), server, webRequest()));
    expect(none).to.include({ error: 'access_denied' }).and.not.have.property('code');
    const set = await managed(server, 'PUT', '/guardian/factors/otp', { enabled: true });
    expect(set.status).to.equal(200);
    const agent = createAgent(server);
    const asked = await logIn(agent, server, webRequest());
    expect(asked.location).not.to.contain('code=');
    const page = await follow(agent, asked, server.url);
    expect(page.location + page.text).to.match(/mfa/);
    // Neither the open session nor a silent request avoids it.
    const silent = await authorize(agent, webRequest({ prompt: 'none' }));
    expect(responseOf(silent)).to.include({ error: 'login_required' });
    const { status, body } = await password();
    expect(status).to.equal(403);
    expect(body.error).to.equal('mfa_required');
    expect(body).to.have.property('mfa_token');
    // Users of other applications are not asked.
    const { challenge } = pkce();
    expect(responseOf(await logIn(createAgent(server), server, spaRequest(challenge)))).to.have.property(
      'code',
    );
  });
});
