// A silent request (`prompt=none`) with a login ticket: what auth0-js `popup.loginWithCredentials` and Lock in
// popup mode do after `/co/authenticate`. No page may be shown, so the login ends in the request itself.
import { expect } from 'chai';
import { tenant as base } from '../connections/passwordless/tenant.ts';
import { factors, POLICY, REALM_GRANT } from '../factors/tenant.ts';
import { type Agent, createAgent } from '../support/agent.ts';
import {
  authorize,
  follow,
  logIn,
  payload,
  responseOf,
  SPA_CALLBACK,
  THIRD_CALLBACK,
  USER,
} from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';

const BLOCKED = { email: 'to-be-blocked@example.test', password: USER.password };
const OTHER = { email: 'grace@example.test', password: USER.password };

const tenant = {
  ...base,
  clients: base.clients.map((client) => ({ ...client, cross_origin_authentication: true })),
  guardianFactors: factors('otp'),
  users: [
    ...base.users,
    ...[OTHER, BLOCKED].map((user) => ({ ...user, connection: 'users', email_verified: true })),
  ],
};

describe('a silent request with a login ticket', () => {
  let server: TestServer;
  before(async () => {
    server = await startServer({ tenant });
  });
  after(() => server?.stop());

  const authenticate = (browser: Agent, email: string, over: Record<string, string> = {}) =>
    browser.request('/co/authenticate', {
      json: {
        client_id: 'spa',
        credential_type: REALM_GRANT,
        realm: 'users',
        username: email,
        password: USER.password,
        ...over,
      },
      headers: { origin: new URL(over.client_id === 'third' ? THIRD_CALLBACK : SPA_CALLBACK).origin },
    });
  const ticketFor = async (browser: Agent, email = USER.email, clientId = 'spa'): Promise<string> => {
    const answer = await authenticate(browser, email, { client_id: clientId });
    expect(answer.status, answer.text).to.equal(200);
    return answer.json().login_ticket;
  };
  const request = (over: Record<string, string> = {}) => ({
    client_id: 'spa',
    response_type: 'token id_token',
    redirect_uri: SPA_CALLBACK,
    scope: 'openid email',
    state: 's',
    nonce: 'n',
    prompt: 'none',
    ...over,
  });
  const silently = async (browser: Agent, over: Record<string, string> = {}) =>
    responseOf(await authorize(browser, request(over)));
  const loggedIn = async (browser: Agent): Promise<string | undefined> => {
    const { id_token } = await silently(browser);
    return id_token === undefined ? undefined : payload(id_token).email;
  };
  const sessionCookie = (browser: Agent) =>
    browser.cookies().find(({ name }) => name === '__Host-gatehouse_session')?.value;

  for (const prompt of ['none', 'login']) {
    it(`has the auth_time of its proof, whenever the ticket is used, with prompt=${prompt}`, async () => {
      const browser = createAgent(server);
      const login_ticket = await ticketFor(browser);
      server.tick(60_000);
      const answer = await follow(
        browser,
        await authorize(browser, request({ login_ticket, prompt })),
        server.url,
      );
      const { auth_time, iat } = payload(responseOf(answer).id_token ?? '');
      expect(iat - auth_time).to.be.within(58, 64);
      server.tick(40_000);
      expect(await silently(browser, { max_age: '80' })).to.include({ error: 'login_required' });
    });
  }

  it('logs in and begins a session', async () => {
    const browser = createAgent(server);
    const { id_token, access_token } = await silently(browser, { login_ticket: await ticketFor(browser) });
    expect(payload(id_token ?? '')).to.include({ email: USER.email, nonce: 'n' });
    expect(access_token).to.be.a('string');
    expect(await loggedIn(browser)).to.equal(USER.email);
  });

  it('answers by web_message', async () => {
    const browser = createAgent(server);
    const login_ticket = await ticketFor(browser);
    const answer = await authorize(browser, request({ login_ticket, response_mode: 'web_message' }));
    expect(answer.status).to.equal(200);
    expect(answer.text).to.contain('authorization_response').and.to.contain('id_token');
    expect(answer.headers['x-frame-options']).to.equal(undefined);
  });

  it('uses the ticket up', async () => {
    const browser = createAgent(server);
    const login_ticket = await ticketFor(browser);
    expect(await silently(browser, { login_ticket })).to.have.property('access_token');
    expect(await silently(browser, { login_ticket })).to.include({
      error: 'login_required',
      error_description: 'Login required',
      state: 's',
    });
  });

  it('succeeds once of many simultaneous requests with the same ticket', async () => {
    const browser = createAgent(server);
    const login_ticket = await ticketFor(browser);
    const all = await Promise.all(Array.from({ length: 8 }, () => silently(browser, { login_ticket })));
    expect(all.filter(({ access_token }) => access_token !== undefined)).to.have.length(1);
  });

  it('is refused with a ticket of another browser, where the ticket stays valid', async () => {
    const [browser, thief] = [createAgent(server), createAgent(server)];
    const login_ticket = await ticketFor(browser);
    await ticketFor(thief, OTHER.email);
    expect(await silently(thief, { login_ticket })).to.include({ error: 'login_required' });
    expect(await silently(thief)).to.include({ error: 'login_required' });
    expect(await silently(browser, { login_ticket })).to.have.property('access_token');
  });

  it('is refused with a ticket of another application', async () => {
    const browser = createAgent(server);
    const login_ticket = await ticketFor(browser, USER.email, 'third');
    expect(await silently(browser, { login_ticket })).to.include({ error: 'login_required' });
  });

  it('is refused with an invalid or expired ticket, even with a session', async () => {
    const browser = createAgent(server);
    await silently(browser, { login_ticket: await ticketFor(browser) });
    expect(await silently(browser, { login_ticket: 'x'.repeat(43) })).to.include({ error: 'login_required' });
    const login_ticket = await ticketFor(browser, OTHER.email);
    server.tick(121_000);
    expect(await silently(browser, { login_ticket })).to.include({ error: 'login_required' });
    expect(await loggedIn(browser)).to.equal(USER.email);
  });

  it('does not use up the ticket when the request is invalid', async () => {
    const browser = createAgent(server);
    const login_ticket = await ticketFor(browser);
    expect(await silently(browser, { login_ticket, nonce: '' })).to.include({ error: 'invalid_request' });
    expect(await silently(browser, { login_ticket })).to.have.property('access_token');
  });

  it('is refused when a second factor is needed, without beginning a session', async () => {
    const browser = createAgent(server);
    const login_ticket = await ticketFor(browser);
    expect(await silently(browser, { login_ticket, acr_values: POLICY })).to.include({
      error: 'login_required',
      error_description: 'Multifactor authentication required',
    });
    expect(await silently(browser)).to.include({ error: 'login_required' });
  });

  it('refuses a user who was blocked meanwhile', async () => {
    const browser = createAgent(server);
    const login_ticket = await ticketFor(browser, BLOCKED.email);
    const id = (await server.users.findInConnection({ name: 'users' }, BLOCKED.email))?.id ?? '';
    await server.users.update(id, { blocked: true });
    expect(await silently(browser, { login_ticket })).to.include({
      error: 'unauthorized',
      error_description: 'user is blocked',
    });
    expect(await silently(browser)).to.include({ error: 'login_required' });
  });

  it('cannot be made for a blocked user, which is the error of the ticket request', async () => {
    const answer = await authenticate(createAgent(server), 'blocked@example.test');
    expect(answer.status).to.equal(403);
    expect(answer.json()).to.deep.equal({ error: 'blocked_user', error_description: 'Blocked user' });
    const wrong = await authenticate(createAgent(server), 'blocked@example.test', { password: 'wrong' });
    expect(wrong.json()).to.include({ error: 'access_denied' });
  });

  it('cannot be made for a realm that the application does not have', async () => {
    for (const realm of ['nowhere', 'staff']) {
      const answer = await authenticate(createAgent(server), USER.email, { realm });
      expect(answer.status).to.equal(400);
      expect(answer.json().error_description).to.equal(`Unknown realm ${realm}.`);
    }
  });

  it("is refused when the request names another connection than the ticket's", async () => {
    const browser = createAgent(server);
    const login_ticket = await ticketFor(browser);
    expect(await silently(browser, { login_ticket, connection: 'email' })).to.include({
      error: 'login_required',
    });
    expect(await silently(browser)).to.include({ error: 'login_required' });
  });

  it('is refused to a third-party application without consent', async () => {
    const browser = createAgent(server);
    const login_ticket = await ticketFor(browser, USER.email, 'third');
    const over = { client_id: 'third', redirect_uri: THIRD_CALLBACK, response_type: 'code', login_ticket };
    expect(await silently(browser, over)).to.include({ error: 'consent_required' });
  });

  it('changes the session’s cookie, as each login does', async () => {
    const browser = createAgent(server);
    await logIn(browser, server, { ...request(), prompt: 'login' });
    const before = sessionCookie(browser);
    await silently(browser, { login_ticket: await ticketFor(browser) });
    expect(sessionCookie(browser)).to.be.a('string').and.not.to.equal(before);
  });

  it("ends another user's session, and its sid", async () => {
    const browser = createAgent(server);
    const first = await silently(browser, { login_ticket: await ticketFor(browser) });
    const second = await silently(browser, { login_ticket: await ticketFor(browser, OTHER.email) });
    expect(payload(second.id_token ?? '')).to.include({ email: OTHER.email });
    expect(payload(second.id_token ?? '').sid).not.to.equal(payload(first.id_token ?? '').sid);
    expect(await loggedIn(browser)).to.equal(OTHER.email);
  });
});
