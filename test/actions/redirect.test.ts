// An action of post-login redirects the user and continues when they are back: in the same browser, once, and only
// while the login is still valid.
import { createHmac } from 'node:crypto';
import { expect } from 'chai';
import { startManaged } from '../management/support.ts';
import { type Agent, type Answer, createAgent } from '../support/agent.ts';
import {
  authorize,
  tenant as base,
  follow,
  logIn,
  PASSWORD_REQUEST,
  payload,
  redeem,
  responseOf,
  token,
  USER,
  webRequest,
} from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';
import { actionFailures, bindActions, managed } from './support.ts';

const NS = 'https://example.test/';
const FORM = 'https://forms.example.test/terms';
const SECRET = 'a-secret-that-the-form-knows-too';
const tenant = { ...base, users: [{ ...USER, email_verified: true }, ...base.users.slice(1)] };

/** Redirects the user, and accepts what the form says about them. */
const ASKS = `
  exports.onExecutePostLogin = async (event, api) => {
    if (event.user.app_metadata.terms === 'accepted') return;
    const session_token = api.redirect.encodeToken({
      secret: event.secrets.SHARED, expiresInSeconds: 60, payload: { email: event.user.email } });
    api.transaction.setMetadata('asked', true);
    api.redirect.sendUserTo('${FORM}?from=here', { query: { session_token } });
  };
  exports.onContinuePostLogin = async (event, api) => {
    const said = api.redirect.validateToken({ secret: event.secrets.SHARED, tokenParameterName: 'answer' });
    if (said.terms !== 'accepted') return api.access.deny('The terms were not accepted.');
    api.user.setAppMetadata('terms', 'accepted');
    api.authentication.recordMethod('https://forms.example.test/terms');
    api.idToken.setCustomClaim('${NS}continued', [event.request.method, event.transaction.metadata.asked]);
  };`;

const BEFORE = `exports.onExecutePostLogin = async (event, api) => {
  api.user.setUserMetadata('runs', (event.user.user_metadata.runs ?? 0) + 1);
  api.transaction.setMetadata('n', (event.transaction.metadata.n ?? 0) + 1);
  api.idToken.setCustomClaim('${NS}before', true);
};`;

const AFTER = `exports.onExecutePostLogin = async (event, api) => {
  api.idToken.setCustomClaim('${NS}after', [event.transaction.metadata.n, event.user.user_metadata.runs,
    event.user.app_metadata.terms, event.authentication.methods.map(({ name }) => name)]);
};`;

function signed(claims: object, secret = SECRET, alg = 'HS256'): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const body = `${part({ alg, typ: 'JWT' })}.${part(claims)}`;
  return `${body}.${createHmac('sha256', secret).update(body).digest('base64url')}`;
}

describe('an action that redirects the user', () => {
  let server: TestServer;
  let ids: string[];
  beforeEach(async () => {
    server = await startManaged(tenant);
    const secrets = { SHARED: SECRET };
    ids = await bindActions(server, 'post-login', { code: BEFORE }, { code: ASKS, secrets }, { code: AFTER });
  });
  afterEach(() => server.stop());

  /** Logs in, and is redirected to the form. */
  const away = async (agent: Agent, over: Record<string, string> = {}) => {
    const sent = await logIn(agent, server, webRequest(over));
    expect(sent.location, sent.text).to.match(/^https:\/\/forms\.example\.test\/terms\?from=here&/);
    const { state = '', session_token = '' } = responseOf(sent);
    return { state, told: payload(session_token), session_token };
  };
  /** What the form says about the user. */
  const answer = (
    { state, told }: { state: string; told: Record<string, unknown> },
    over: Record<string, unknown> = {},
  ) => {
    const now = Math.floor(Date.now() / 1000);
    return { iss: 'forms', sub: told.sub, iat: now, exp: now + 600, state, terms: 'accepted', ...over };
  };
  const comeBack = async (agent: Agent, state: string, said: string): Promise<Answer> =>
    follow(agent, await agent.get(`/continue?${new URLSearchParams({ state, answer: said })}`), server.url);
  const idToken = async (agent: Agent, done: Answer) => {
    const { code } = responseOf(done);
    expect(code, done.location + done.text).to.be.a('string');
    const got = await redeem(agent, code);
    return payload(got.json().id_token);
  };

  it("continues where it was, with the user's answer: earlier actions do not run again, later ones do", async () => {
    const agent = createAgent(server);
    const sent = await away(agent);
    expect(sent.told).to.include({ iss: 'localhost', email: USER.email });
    expect(sent.told.ip).to.be.a('string');
    expect(Number(sent.told.exp) - Number(sent.told.iat)).to.equal(60);
    const claims = await idToken(agent, await comeBack(agent, sent.state, signed(answer(sent))));
    expect(claims.sub).to.equal(sent.told.sub);
    expect(claims[`${NS}before`]).to.equal(true);
    expect(claims[`${NS}continued`]).to.deep.equal(['GET', true]);
    expect(claims[`${NS}after`]).to.deep.equal([1, 1, 'accepted', ['pwd', FORM]]);
    // Stored with the user and in the session: the user is not asked again.
    const again = await follow(agent, await authorize(agent, webRequest()), server.url);
    const later = await idToken(agent, again);
    expect(later[`${NS}after`]).to.deep.equal([1, 2, 'accepted', ['pwd', FORM]]);
  });

  it('accepts an answer that is posted', async () => {
    const agent = createAgent(server);
    const sent = await away(agent);
    const form = { state: sent.state, answer: signed(answer(sent)) };
    const claims = await idToken(
      agent,
      await follow(agent, await agent.request('/continue', { form }), server.url),
    );
    expect(claims[`${NS}continued`]).to.deep.equal(['POST', true]);
  });

  it('may deny the login when the user is back', async () => {
    const agent = createAgent(server);
    const sent = await away(agent);
    const done = await comeBack(agent, sent.state, signed(answer(sent, { terms: 'refused' })));
    expect(responseOf(done)).to.include({
      error: 'access_denied',
      error_description: 'The terms were not accepted.',
    });
  });

  it('rejects a token with another state or user, one that is too old, and one that is signed otherwise', async () => {
    const now = Math.floor(Date.now() / 1000);
    const lies: ((sent: Awaited<ReturnType<typeof away>>) => string)[] = [
      (sent) => signed(answer(sent, { state: 'another' })),
      (sent) => signed(answer(sent, { state: undefined })),
      (sent) => signed(answer(sent, { sub: 'auth0|somebody' })),
      (sent) => signed(answer(sent, { exp: now - 10 })),
      (sent) => signed(answer(sent, { exp: undefined })),
      (sent) => signed(answer(sent), 'another-secret'),
      (sent) => signed(answer(sent), SECRET, 'none'),
      // The token that the action itself gave to the form.
      (sent) => sent.session_token,
      () => '',
    ];
    for (const lie of lies) {
      const agent = createAgent(server);
      const sent = await away(agent);
      const done = responseOf(await comeBack(agent, sent.state, lie(sent)));
      expect(done).to.include({ error: 'access_denied' }).and.not.have.property('code');
    }
  });

  it('accepts a state once, from any number of concurrent requests one', async () => {
    const agent = createAgent(server);
    const sent = await away(agent);
    const path = `/continue?${new URLSearchParams({ state: sent.state, answer: signed(answer(sent)) })}`;
    const tries = await Promise.all([1, 2, 3, 4].map(() => agent.get(path)));
    const taken = tries.filter(({ status }) => status === 303);
    expect(taken).to.have.length(1);
    expect(tries.filter(({ status }) => status === 400)).to.have.length(3);
    const [first] = taken;
    if (first === undefined) throw new Error('none was taken');
    const back = first.location;
    await idToken(agent, await follow(agent, first, server.url));
    for (const used of [path, back]) expect((await agent.get(used)).status).to.equal(400);
  });

  it('rejects a state in another browser, and leaves it valid in its own', async () => {
    const [agent, other] = [createAgent(server), createAgent(server)];
    const [sent, others] = [await away(agent), await away(other)];
    // Planted in the browser of a victim by a link, or requested by somebody who has only seen it.
    for (const stranger of [other, createAgent(server)]) {
      const planted = await comeBack(stranger, sent.state, signed(answer(sent)));
      expect(planted.status).to.equal(400);
    }
    for (const state of ['', 'x'.repeat(43)])
      expect((await comeBack(agent, state, 'x')).status).to.equal(400);
    await idToken(agent, await comeBack(agent, sent.state, signed(answer(sent))));
    await idToken(other, await comeBack(other, others.state, signed(answer(others))));
  });

  it('ends the login when the user was blocked, the session has ended, or the password was changed meanwhile', async () => {
    const endings: [name: string, end: (agent: Agent, sub: string) => Promise<unknown>][] = [
      ['logout', (agent) => agent.get('/v2/logout')],
      ['password', (_, sub) => managed(server, 'PATCH', `/users/${sub}`, { password: 'Another-Horse-2' })],
      ['blocked', (_, sub) => managed(server, 'PATCH', `/users/${sub}`, { blocked: true })],
    ];
    let password = USER.password;
    for (const [name, end] of endings) {
      const agent = createAgent(server);
      const sent = await logIn(agent, server, webRequest(), { ...USER, password });
      const { state = '', session_token = '' } = responseOf(sent);
      const told = payload(session_token);
      await end(agent, encodeURIComponent(String(told.sub)));
      if (name === 'password') password = 'Another-Horse-2';
      const done = await comeBack(agent, state, signed(answer({ state, told })));
      expect(done.location, name).not.to.contain('code=');
      const { body } = await managed(server, 'GET', `/users/${encodeURIComponent(String(told.sub))}`);
      expect(body.app_metadata ?? {}, name).not.to.have.property('terms');
    }
  });

  it('ends the login when the application has removed its callback', async () => {
    const agent = createAgent(server);
    const sent = await away(agent);
    await managed(server, 'PATCH', '/clients/web', { callbacks: ['http://localhost:3001/other'] });
    const done = await comeBack(agent, sent.state, signed(answer(sent)));
    expect(done.status).to.equal(400);
    expect(done.location).not.to.contain('code=');
  });

  it('begins anew when other actions are bound meanwhile, and what they deny is denied', async () => {
    const agent = createAgent(server);
    const sent = await away(agent);
    const patched = await managed(server, 'PATCH', `/actions/actions/${ids[0]}`, {
      code: `exports.onExecutePostLogin = async (event, api) => api.access.deny('Closed.');`,
    });
    expect(patched.status).to.equal(200);
    await managed(server, 'POST', `/actions/actions/${ids[0]}/deploy`);
    const done = responseOf(await comeBack(agent, sent.state, signed(answer(sent))));
    expect(done).to.include({ error: 'access_denied', error_description: 'Closed.' });
  });

  it('lets a silent request fail with interaction_required', async () => {
    const agent = createAgent(server);
    await away(agent);
    const silent = await authorize(agent, webRequest({ prompt: 'none' }));
    expect(responseOf(silent)).to.include({ error: 'interaction_required' });
  });

  it('ends a request without a browser', async () => {
    const answer = await token(createAgent(server), {
      ...PASSWORD_REQUEST,
      scope: 'openid',
    });
    expect(answer.status).to.equal(403);
    expect(answer.json().error).to.equal('access_denied');
    expect((await actionFailures(server)).join()).to.contain('redirect.sendUserTo');
  });

  it('cannot redirect to an invalid address, or to one that could be read on the network', async () => {
    const addresses = ['/relative', 'javascript:alert(1)', 'http://forms.example.test/', 'data:text/html,x'];
    for (const address of [...addresses, 'https://user:secret@forms.example.test/']) {
      await bindActions(server, 'post-login', {
        code: `exports.onExecutePostLogin = async (event, api) => api.redirect.sendUserTo('${address}');`,
      });
      const done = await logIn(createAgent(server), server, webRequest());
      expect(responseOf(done), address).to.include({ error: 'access_denied' });
      expect(done.location).to.match(/^http:\/\/localhost:3001\//);
    }
  });

  it('ends the login when it would show a form, and the log says what to do instead', async () => {
    const code = `exports.onExecutePostLogin = async (event, api) => api.prompt.render('ap_form');`;
    await bindActions(server, 'post-login', { code });
    const done = await logIn(createAgent(server), server, webRequest());
    expect(responseOf(done)).to.include({ error: 'access_denied' });
    expect((await actionFailures(server)).join()).to.contain(
      'redirect.sendUserTo goes to a page of your own',
    );
  });

  it('ends the login when the user is back and it has no continuation', async () => {
    await bindActions(server, 'post-login', {
      code: `exports.onExecutePostLogin = async (event, api) => {
        if (api.redirect.canRedirect()) api.redirect.sendUserTo('http://localhost:9/'); };`,
    });
    const agent = createAgent(server);
    const { state = '' } = responseOf(await logIn(agent, server, webRequest()));
    const done = await comeBack(agent, state, 'x');
    expect(responseOf(done)).to.include({ error: 'access_denied' });
    // It may check first whether a redirect is possible.
    const silent = await authorize(agent, webRequest({ prompt: 'none' }));
    expect(responseOf(silent)).to.have.property('code');
  });
});
