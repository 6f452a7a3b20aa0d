// Rules of older tenants: they run before the actions of a login, and can deny it, add claims, and ask for a second
// factor.
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
  redeem,
  responseOf,
  spaRequest,
  spaTokens,
  token,
  USER,
  webRequest,
} from '../support/flows.ts';
import { PROTOCOL_CLAIMS } from '../support/protocol-claims.ts';
import { SHORT_SCRIPTS, type TestServer } from '../support/server.ts';
import { actionFailures, bindActions, managed } from './support.ts';

const NS = 'https://example.test/';
const tenant = { ...base, users: [{ ...USER, email_verified: true, app_metadata: { plan: 'gold' } }] };

describe('rules', () => {
  let server: TestServer;
  beforeEach(async () => {
    server = await startManaged(tenant, undefined, {}, { waits: SHORT_SCRIPTS });
  });
  afterEach(() => server.stop());

  /** Makes rules of whole functions, in order. @returns their ids. */
  const make = async (...scripts: string[]): Promise<string[]> => {
    const ids: string[] = [];
    for (const [index, script] of scripts.entries()) {
      const { status, body } = await managed(server, 'POST', '/rules', { name: `Rule ${index}`, script });
      expect(status, JSON.stringify(body)).to.equal(201);
      ids.push(body.id);
    }
    return ids;
  };
  const rule = (body: string) => `function (user, context, callback) {\n${body}\n}`;
  const password = async () => {
    const answer = await token(createAgent(server), {
      ...PASSWORD_REQUEST,
      scope: 'openid offline_access',
      audience: API,
    });
    return { status: answer.status, body: answer.json() };
  };

  it('add claims to tokens, by password, in the browser and at a refresh', async () => {
    await make(
      `/**
        * @title Add a plan
        */
       function addPlan(user, context, callback) {
         const namespace = '${NS}';
         context.idToken[namespace + 'plan'] = user.app_metadata.plan;
         context.accessToken[namespace + 'plan'] = user.app_metadata.plan;
         context.accessToken[namespace + 'by'] = context.protocol;
         return callback(null, user, context);
       };`,
      `async function (user, context, callback) {
         context.idToken['${NS}seen'] = context.idToken['${NS}plan'] + ' ' + context.clientName + ' ' + _.size(context.authorization.roles);
         callback(null, user, context);
       }`,
    );
    const { body } = await password();
    expect(payload(body.id_token)).to.include({ [`${NS}plan`]: 'gold', [`${NS}seen`]: 'gold Web app 0' });
    expect(payload(body.access_token)).to.include({ [`${NS}plan`]: 'gold', [`${NS}by`]: 'oauth2-password' });
    const agent = createAgent(server);
    const tokens = await spaTokens(agent, server, { scope: 'openid offline_access', audience: API });
    expect(payload(tokens.id_token)).to.include({ [`${NS}plan`]: 'gold' });
    const again = await token(agent, {
      grant_type: 'refresh_token',
      client_id: 'spa',
      refresh_token: tokens.refresh_token,
    });
    expect(payload(again.json().access_token)).to.include({ [`${NS}by`]: 'oauth2-refresh-token' });
  });

  it('get the user, the application, the connection and the request, and no password', async () => {
    await make(
      rule(`context.idToken['${NS}said'] = {
        user: [user.email, user.email_verified, user.identities[0].provider, user.user_id],
        context: JSON.parse(JSON.stringify(context)), has: [typeof auth0.users.updateUserMetadata, auth0.domain, typeof request, typeof jwt.decode],
      };
      callback(null, user, context);`),
    );
    const { body } = await password();
    const { sub, [`${NS}said`]: said } = payload(body.id_token);
    expect(said.user).to.deep.equal([USER.email, true, 'auth0', sub]);
    expect(said.context).to.deep.include({
      clientID: 'web',
      clientName: 'Web app',
      protocol: 'oauth2-password',
    });
    expect(said.context.connectionStrategy).to.equal('auth0');
    expect(said.context.request).to.include({ method: 'POST' }).and.have.property('userAgent');
    expect(said.context.stats.loginsCount).to.be.a('number');
    expect(said.has).to.deep.equal(['function', 'localhost', 'function', 'function']);
    expect(JSON.stringify(said)).not.to.contain(USER.password).and.not.contain('web-secret');
  });

  it('refuse a login with their message, and no action runs after that', async () => {
    await make(
      rule(`if (context.clientID === 'm2m') return callback(null, user, context);
        callback(new UnauthorizedError('Only on weekdays.'));`),
      rule(`throw new Error('was run');`),
    );
    await bindActions(server, 'post-login', {
      code: `exports.onExecutePostLogin = async () => { throw new Error('was run'); };`,
    });
    const denied = { error: 'unauthorized', error_description: 'Only on weekdays.' };
    expect(await password()).to.deep.equal({ status: 403, body: denied });
    const { challenge } = pkce();
    expect(responseOf(await logIn(createAgent(server), server, spaRequest(challenge)))).to.include(denied);
    expect(await actionFailures(server)).to.deep.equal([]);
  });

  it('end the login when they fail or answer nothing, and only the log says why', async () => {
    for (const [script, why] of [
      [
        rule(`callback(new Error('The database of x is down.'));`),
        /Rule 0 failed: script: The database of x/,
      ],
      [rule('throw new TypeError("no");'), /script: no/],
      [rule('user.nothing.deep;'), /script/],
      ['async function (user, context, callback) { await nothing(); }', /script/],
      [rule(''), /unanswered/],
      [rule('for (;;);'), /cpu/],
      ['42', /is no function/],
      ['function (', /failed/],
      [rule(`callback(null, user, 'a text');`), /cannot be read/],
    ] as const) {
      const [id] = await make(script);
      expect(await password(), script).to.deep.equal({
        status: 403,
        body: { error: 'access_denied', error_description: 'The request could not be completed.' },
      });
      expect((await actionFailures(server)).at(-1)).to.match(why);
      if (why.source === 'cpu') {
        await managed(server, 'DELETE', `/rules/${id}`);
        continue;
      }
      const answer = responseOf(await logIn(createAgent(server), server, webRequest()));
      expect(answer).to.include({ error: 'access_denied' }).and.not.have.property('code');
      await managed(server, 'DELETE', `/rules/${id}`);
    }
    expect((await password()).status).to.equal(200);
  });

  it('cannot set claims of the protocol', async () => {
    await make(
      rule(`for (const claim of ${JSON.stringify(PROTOCOL_CLAIMS)}) {
          context.idToken[claim] = 'evil'; context.accessToken[claim] = 'evil'; }
        context.accessToken.permissions = 'evil'; context.idToken.email_verified = 'evil'; user.email = 'evil@example.test'; user.user_id = 'evil';
        callback(null, user, context);`),
    );
    const { body } = await password();
    expect(JSON.stringify([payload(body.id_token), payload(body.access_token)])).not.to.contain('evil');
    expect((await actionFailures(server)).join()).to.contain('sub is a claim of the protocol');
  });

  it('run in their order, if they are enabled, and only for logins', async () => {
    const [first = '', second = ''] = await make(
      rule(
        `context.idToken['${NS}order'] = (context.idToken['${NS}order'] || '') + 'a'; callback(null, user, context);`,
      ),
      rule(
        `context.idToken['${NS}order'] = (context.idToken['${NS}order'] || '') + 'b'; callback(null, user, context);`,
      ),
    );
    const stage = { name: 'failures', script: rule(`callback(new Error('x'));`), stage: 'login_failure' };
    expect((await managed(server, 'POST', '/rules', stage)).status).to.equal(201);
    const order = async () => payload((await password()).body.id_token)[`${NS}order`];
    expect(await order()).to.equal('ab');
    await managed(server, 'PATCH', `/rules/${first}`, { order: 9 });
    expect(await order()).to.equal('ba');
    await managed(server, 'PATCH', `/rules/${second}`, { enabled: false });
    expect(await order()).to.equal('a');
  });

  it('get their configuration, which no API returns', async () => {
    const value = 'a-value-of-the-rules-77';
    expect((await managed(server, 'PUT', '/rules-configs/API_KEY', { value })).status).to.equal(200);
    await make(
      rule(`console.log(configuration.API_KEY);
        context.idToken['${NS}key'] = configuration.API_KEY.length;
        if (user.app_metadata.plan === 'none') return callback(new Error(configuration.API_KEY));
        callback(null, user, context);`),
    );
    expect(payload((await password()).body.id_token)).to.include({ [`${NS}key`]: value.length });
    expect((await managed(server, 'GET', '/rules-configs')).body).to.deep.equal([{ key: 'API_KEY' }]);
    const { text } = await createAgent(server).get('/dev/scripts.json');
    expect(text).to.contain('rule Rule 0').and.contain('***').and.not.contain(value);
    expect(server.logged()).not.to.contain(value);
  });

  it('store metadata, which later rules, actions and logins get', async () => {
    await make(
      rule(`user.app_metadata.seen = (user.app_metadata.seen || 0) + 1;
        auth0.users.updateAppMetadata(user.user_id, user.app_metadata)
          .then(() => auth0.users.updateUserMetadata(user.user_id, { theme: 'dark' }))
          .then(() => callback(null, user, context)).catch(callback);`),
    );
    await bindActions(server, 'post-login', {
      code: `exports.onExecutePostLogin = async (event, api) => {
        api.idToken.setCustomClaim('${NS}both', [event.user.app_metadata, event.user.user_metadata]);
      };`,
    });
    const both = [{ plan: 'gold', seen: 1 }, { theme: 'dark' }];
    expect(payload((await password()).body.id_token)[`${NS}both`]).to.deep.equal(both);
    const again = payload((await password()).body.id_token);
    expect(again[`${NS}both`][0].seen).to.equal(2);
    const { body } = await managed(server, 'GET', `/users/${encodeURIComponent(again.sub)}`);
    expect(body).to.deep.include({
      app_metadata: { plan: 'gold', seen: 2 },
      user_metadata: { theme: 'dark' },
    });
  });

  it('cannot write to other users', async () => {
    await make(
      rule(`auth0.users.updateAppMetadata('auth0|other', { admin: true })
        .then(() => callback(null, user, context)).catch((error) => callback(new UnauthorizedError(error.message)));`),
    );
    expect((await password()).body).to.include({ error: 'unauthorized' });
  });

  it('that ask for a second factor get one, or there are no tokens', async () => {
    await make(
      rule(`if (context.clientID === 'web') context.multifactor = { provider: 'any', allowRememberBrowser: false };
        callback(null, user, context);`),
    );
    await managed(server, 'PUT', '/guardian/factors/otp', { enabled: true });
    const agent = createAgent(server);
    const page = await follow(agent, await logIn(agent, server, webRequest()), server.url);
    expect(page.location + page.text).to.match(/mfa/);
    const silent = await authorize(agent, webRequest({ prompt: 'none' }));
    expect(responseOf(silent)).to.include({ error: 'login_required' });
    expect((await password()).body).to.include({ error: 'mfa_required' });
    const { challenge } = pkce();
    const others = responseOf(await logIn(createAgent(server), server, spaRequest(challenge)));
    expect(others).to.have.property('code');
  });

  it("redirect the user, and run again with the user's answer", async () => {
    await make(
      rule(`context.idToken['${NS}first'] = context.protocol; callback(null, user, context);`),
      rule(`if (context.protocol === 'redirect-callback') {
          if (context.request.query.terms !== 'accepted') return callback(new UnauthorizedError('No terms.'));
          context.idToken['${NS}terms'] = 'accepted';
          return callback(null, user, context);
        }
        context.redirect = { url: 'https://forms.example.test/terms?a=b' };
        callback(null, user, context);`),
    );
    await bindActions(server, 'post-login', {
      code: `exports.onExecutePostLogin = async (event, api) =>
        api.idToken.setCustomClaim('${NS}action', event.transaction.protocol);`,
    });
    const agent = createAgent(server);
    const away = await logIn(agent, server, webRequest());
    expect(away.location).to.match(/^https:\/\/forms\.example\.test\/terms\?a=b&state=/);
    const { state = '' } = responseOf(away);
    const back = await follow(
      agent,
      await agent.get(`/continue?${new URLSearchParams({ state, terms: 'accepted' })}`),
      server.url,
    );
    const { code } = responseOf(back);
    expect(code, back.location + back.text).to.be.a('string');
    const tokens = await redeem(agent, code);
    expect(payload(tokens.json().id_token)).to.include({
      [`${NS}first`]: 'redirect-callback',
      [`${NS}terms`]: 'accepted',
      [`${NS}action`]: 'oidc-basic-profile',
    });
    const other = createAgent(server);
    const { state: again = '' } = responseOf(await logIn(other, server, webRequest()));
    const refused = await follow(other, await other.get(`/continue?state=${again}`), server.url);
    expect(responseOf(refused)).to.include({ error: 'unauthorized', error_description: 'No terms.' });
    // Without a browser nobody can be redirected.
    expect((await password()).body).to.include({ error: 'access_denied' });
    expect(responseOf(await authorize(agent, webRequest({ prompt: 'none' })))).not.to.have.property('code');
  });

  it('set the scopes of the access token', async () => {
    await make(rule(`context.accessToken.scope = ['openid', 'read:things']; callback(null, user, context);`));
    const answer = await token(createAgent(server), {
      ...PASSWORD_REQUEST,
      scope: 'openid email write:things',
      audience: API,
    });
    expect(answer.status, answer.text).to.equal(200);
    const scopes = String(payload(answer.json().access_token).scope).split(' ');
    expect(scopes).to.include('openid').and.not.include('email').and.not.include('write:things');
  });

  it('are imported from the tenant file in its order, and exported into it', async () => {
    await server.stop();
    const add = (letter: string) =>
      rule(
        `context.idToken['${NS}order'] = (context.idToken['${NS}order'] || '') + configuration.${letter}; callback(null, user, context);`,
      );
    server = await startManaged({
      ...tenant,
      rules: [
        { name: 'Zeta', script: add('A') },
        { name: 'Alpha', script: add('B') },
        { name: 'Off', script: rule(`callback(new Error('off'));`), enabled: false },
      ],
      rulesConfigs: [
        { key: 'A', value: 'first' },
        { key: 'B', value: '-second' },
      ],
    });
    expect(payload((await password()).body.id_token)[`${NS}order`]).to.equal('first-second');
    const { body } = await managed(server, 'GET', '/rules');
    expect(
      body.map(({ name, order, enabled }: Record<string, unknown>) => [name, order, enabled]),
    ).to.have.deep.members([
      ['Zeta', 1, true],
      ['Alpha', 2, true],
      ['Off', 3, false],
    ]);
  });
});
