// Somebody who only has the password must not change the second factors of a user who has one, whichever
// application or moment requires no second factor.
import { mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import type { Records } from '../../src/records/collections.ts';
import { createAgent, readForm } from '../support/agent.ts';
import { API, authorize, follow, logIn, payload, responseOf, USER, webRequest } from '../support/flows.ts';
import { messagesTo, nextMessageTo } from '../support/inbox.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { callsOf, codeOf, MFA_GRANTS, POLICY, tenant, unasked } from './tenant.ts';

const SCOPES = 'enroll read:authenticators remove:authenticators';

/** `web` requires no second factor, `leeway` requires one. */

describe('with the password alone', () => {
  let server: TestServer;
  let calls: ReturnType<typeof callsOf>;
  let people = 0;
  before(async () => {
    server = await startServer({ tenant: unasked });
    calls = callsOf(server);
  });
  after(() => server.stop());
  const someone = () => `mfa-${people++}@example.test`;

  it('the token endpoint issues no access token for the MFA API by an application that requires less', async () => {
    const user = someone();
    await calls.enrollOtp(user, 'leeway');
    expect((await calls.login(user)).status, 'other tokens are').to.equal(200);
    const answer = await calls.login(user, { audience: `${server.issuer}mfa/`, scope: SCOPES });
    expect(answer.status, answer.text).to.equal(403);
    expect(answer.json().error).to.equal('mfa_required');
  });

  it('the authorization endpoint issues none either, by a login or by the session', async () => {
    const user = someone();
    await calls.enrollOtp(user, 'leeway');
    const browser = createAgent(server);
    const who = { email: user, password: USER.password };
    expect(responseOf(await logIn(browser, server, webRequest(), who)).code).to.be.a('string');
    const manage = { audience: `${server.issuer}mfa/`, scope: `openid ${SCOPES}` };
    const silent = await authorize(browser, webRequest({ ...manage, prompt: 'none' }));
    expect(responseOf(silent)).to.include({
      error: 'login_required',
      error_description: 'Multifactor authentication required',
    });
    for (const page of [
      await follow(browser, await authorize(browser, webRequest(manage)), server.url),
      await logIn(createAgent(server), server, webRequest(manage), who),
    ]) {
      expect(page.status).to.equal(200);
      expect(readForm(page, 'code').action).to.match(/^\/u\/[\w-]+\/mfa\/otp$/);
    }
  });

  it('a user without a second factor can enrol the first', async () => {
    const user = someone();
    const answer = await calls.login(user, { audience: `${server.issuer}mfa/`, scope: SCOPES });
    expect(answer.status, answer.text).to.equal(200);
    const { access_token } = answer.json();
    const added = await calls.associate(access_token, { authenticator_types: ['otp'] });
    const confirmed = await calls.verify('otp', {
      mfa_token: access_token,
      otp: codeOf(added.json().secret),
    });
    expect(confirmed.status, confirmed.text).to.equal(200);
  });

  it('a blocked user enrols nothing that outlives the block', async () => {
    const user = someone();
    const mfa_token = await calls.mfaToken(user, {}, 'leeway');
    const { secret } = (await calls.associate(mfa_token, { authenticator_types: ['otp'] })).json();
    const { id = '' } = (await server.users.findInConnection({ name: 'users' }, user)) ?? {};
    await server.users.update(id, { blocked: true });
    const confirmed = await calls.verify('otp', { mfa_token, otp: codeOf(secret) }, 'leeway');
    expect(confirmed.status, confirmed.text).to.equal(403);
    await server.users.update(id, { blocked: false });
    const { mfa_requirements } = (await calls.login(user, {}, 'leeway')).json();
    expect(mfa_requirements).to.have.property('enroll');
  });

  it('a recovery code from an enrolment that was not confirmed is invalid', async () => {
    const user = someone();
    const [owners, others] = [
      await calls.mfaToken(user, {}, 'leeway'),
      await calls.mfaToken(user, {}, 'leeway'),
    ];
    const own = (await calls.associate(owners, { authenticator_types: ['otp'] })).json();
    const theirs = (await calls.associate(others, { authenticator_types: ['otp'] })).json();
    const done = await calls.verify('otp', { mfa_token: owners, otp: codeOf(own.secret) }, 'leeway');
    expect(done.status, done.text).to.equal(200);
    const stolen = await calls.verify(
      'recovery-code',
      { mfa_token: await calls.mfaToken(user, {}, 'leeway'), recovery_code: theirs.recovery_codes[0] },
      'leeway',
    );
    expect(stolen.status).to.equal(403);
    const recovered = await calls.verify(
      'recovery-code',
      { mfa_token: await calls.mfaToken(user, {}, 'leeway'), recovery_code: own.recovery_codes[0] },
      'leeway',
    );
    expect(recovered.status, recovered.text).to.equal(200);
  });

  it('of recovery codes renewed at once one is valid', async () => {
    const user = someone();
    const { recoveryCode } = await calls.enrollOtp(user, 'leeway');
    const tokens = await Promise.all([1, 2, 3, 4, 5].map(() => calls.mfaToken(user, {}, 'leeway')));
    const answers = await Promise.all(
      tokens.map((mfa_token) =>
        calls.verify('recovery-code', { mfa_token, recovery_code: recoveryCode }, 'leeway'),
      ),
    );
    expect(answers.filter(({ status }) => status === 200)).to.have.length(1);
    const { records } = await server.store.collection('authenticators').list({ limit: 1000 });
    const { user_id } = records.find(({ kind, active }) => kind === 'otp' && active) ?? {};
    expect(records.filter((one) => one.user_id === user_id && one.kind === 'recovery-code')).to.have.length(
      1,
    );
  });

  it('an application cannot enrol in the name of another', async () => {
    const mfa_token = await calls.mfaToken(someone(), {}, 'leeway');
    const answer = await calls.associate(mfa_token, { client_id: 'web', authenticator_types: ['otp'] });
    expect(answer.status, answer.text).to.equal(401);
  });

  it('the MFA grant issues tokens for the originally requested API and scope', async () => {
    const user = someone();
    const { secret } = await calls.enrollOtp(user, 'leeway');
    server.tick(31_000);
    const mfa_token = await calls.mfaToken(user, { scope: 'openid' }, 'leeway');
    const answer = await calls.verify(
      'otp',
      { mfa_token, otp: codeOf(secret), audience: API, scope: 'read:things write:things' },
      'leeway',
    );
    expect(answer.status, answer.text).to.equal(200);
    expect(answer.json().access_token.split('.')).to.have.length(1);
    expect(answer.json().scope ?? 'openid').to.equal('openid');
    server.tick(31_000);
    const forApi = await calls.mfaToken(user, { scope: 'read:things', audience: API }, 'leeway');
    const manage = await calls.verify(
      'otp',
      { mfa_token: forApi, otp: codeOf(secret), audience: `${server.issuer}mfa/`, scope: SCOPES },
      'leeway',
    );
    expect(payload(manage.json().access_token)).to.deep.include({ scope: 'read:things', aud: API });
    expect((await calls.verify('otp', { mfa_token: forApi, otp: codeOf(secret) }, 'leeway')).status).to.equal(
      401,
    );
  });

  it('codes of one user are limited across phone numbers', async () => {
    const user = someone();
    const mfa_token = await calls.mfaToken(user, {}, 'leeway');
    const statuses: number[] = [];
    for (let i = 10; i < 24; i++) {
      const answer = await calls.associate(mfa_token, {
        authenticator_types: ['oob'],
        oob_channels: ['sms'],
        phone_number: `+165055502${i}`,
      });
      statuses.push(answer.status);
    }
    expect(statuses.slice(0, 10)).to.deep.equal(Array(10).fill(200));
    expect(statuses.slice(10)).to.deep.equal(Array(4).fill(429));
    expect(await messagesTo(server, '+16505550223')).to.deep.equal([]);
  });
});

describe('the risk policy at the token endpoint', () => {
  const USER_ADDRESS = '198.51.100.7';
  const MEMBERS = 'mfa-0@example.test';
  let server: TestServer;
  let calls: ReturnType<typeof callsOf>;
  /**
   * `leeway` is a server that sends its users' addresses, `hs256` one that does not, `native` runs on the user's
   * device.
   */
  beforeEach(async () => {
    server = await startServer({
      tenant: {
        ...tenant,
        clients: [
          ...unasked.clients.map((client) =>
            client.client_id === 'leeway' ? { ...client, is_token_endpoint_ip_header_trusted: true } : client,
          ),
          {
            client_id: 'native',
            name: 'Native',
            app_type: 'native',
            callbacks: [],
            grant_types: ['password', ...MFA_GRANTS],
          },
        ],
        databases: tenant.databases.map((database) => ({
          ...database,
          enabled_clients: [...database.enabled_clients, 'native'],
        })),
        guardianPolicies: ['confidence-score'],
      },
    });
    calls = callsOf(server);
  });
  afterEach(() => server.stop());

  const secretOf: Record<string, string> = {
    leeway: 'leeway-secret',
    hs256: 'a-secret-of-at-least-32-characters!',
    web: 'web-secret',
  };
  /** Sends a request of an application for a user at an address. */
  const ask = (clientId: string, from: string | undefined, fields: Record<string, unknown>) =>
    calls.agent.request('/oauth/token', {
      json: { client_id: clientId, client_secret: secretOf[clientId], ...fields },
      headers: from === undefined ? {} : { 'auth0-forwarded-for': from },
    });
  const login = (clientId: string, from?: string) =>
    ask(clientId, from, { grant_type: 'password', username: MEMBERS, password: USER.password });
  const enroll = async (clientId: string, from?: string) => {
    const refused = await login(clientId, from);
    expect(refused.json().error, refused.text).to.equal('mfa_required');
    const { mfa_token } = refused.json();
    const { secret } = (await calls.associate(mfa_token, { authenticator_types: ['otp'] })).json();
    const grant_type = 'http://auth0.com/oauth/grant-type/mfa-otp';
    const done = await ask(clientId, from, { grant_type, mfa_token, otp: codeOf(secret) });
    expect(done.status, done.text).to.equal(200);
  };

  it('does not know an address by a login without a second factor', async () => {
    expect((await login('web')).status, 'an application that is never asked').to.equal(200);
    expect((await login('leeway', USER_ADDRESS)).status).to.equal(403);
    await enroll('leeway', USER_ADDRESS);
    expect((await login('leeway', USER_ADDRESS)).status, 'known by its second factor').to.equal(200);
    expect((await login('leeway', '198.51.100.8')).status, 'another address').to.equal(403);
  });

  it("does not know the address of a server that does not send its users' addresses", async () => {
    await enroll('hs256');
    expect((await login('hs256')).status, 'somebody else by the same server').to.equal(403);
    expect((await login('hs256', USER_ADDRESS)).status, 'an address that is not believed').to.equal(403);
    expect((await login('native')).status, 'by another application from there').to.equal(403);
  });

  it('does not know an address when a trusted server sends none with the request', async () => {
    await enroll('leeway');
    for (const from of [undefined, '', 'unknown', '127.0.0.1, 198.51.100.7']) {
      expect((await login('leeway', from)).status, from).to.equal(403);
    }
  });

  it("does not know a server's own address because a user logged in from there", async () => {
    await enroll('native');
    expect((await login('native')).status, 'the user’s own device').to.equal(200);
    expect((await login('hs256')).status).to.equal(403);
    expect((await login('leeway')).status).to.equal(403);
  });
});

describe('a factor that is switched off', () => {
  it('does not lock its users out: they enrol one that is on', async () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'gatehouse-factors-'));
    const user = 'mfa-0@example.test';
    const before = await startServer({ tenant, dataDir });
    await callsOf(before).enrollOtp(user);
    const settings = structuredClone(
      await before.store.collection('tenant').get('tenant'),
    ) as Records['tenant'];
    await before.store
      .collection('tenant')
      .put({ ...settings, guardianFactors: [{ name: 'sms', enabled: true }] });
    await before.stop();
    const after = await startServer({ tenant, dataDir });
    try {
      const calls = callsOf(after);
      const mfa_token = await calls.mfaToken(user);
      const { oob_code } = (
        await calls.associate(mfa_token, {
          authenticator_types: ['oob'],
          oob_channels: ['sms'],
          phone_number: '+16505550199',
        })
      ).json();
      const { code: binding_code } = await nextMessageTo(after, '+16505550199');
      const done = await calls.verify('oob', { mfa_token, oob_code, binding_code });
      expect(done.status, done.text).to.equal(200);
    } finally {
      await after.stop();
      await rm(dataDir, { recursive: true });
    }
  });
});

describe('an acr value that is essential', () => {
  it('is met by a second factor', async () => {
    const server = await startServer({ tenant: { ...tenant, guardianPolicies: [] } });
    try {
      const claims = JSON.stringify({ id_token: { acr: { essential: true, values: [POLICY] } } });
      const user = { email: 'mfa-3@example.test', password: USER.password };
      const page = await logIn(createAgent(server), server, webRequest({ claims }), user);
      expect(page.text).to.contain('One more step');
    } finally {
      await server.stop();
    }
  });
});

describe('ten wrong codes from one address', () => {
  it("block the account, and the owner's link unblocks it", async () => {
    const { bruteForceProtection: _off, ...attackProtection } = tenant.attackProtection;
    const server = await startServer({ tenant: { ...tenant, attackProtection } });
    try {
      const calls = callsOf(server);
      const user = 'mfa-4@example.test';
      const { secret } = await calls.enrollOtp(user);
      for (let i = 0; i < 10; i++) {
        await calls.verify('otp', { mfa_token: await calls.mfaToken(user), otp: '000000' });
      }
      server.tick(3_600_000);
      const right = async () =>
        (await calls.verify('otp', { mfa_token: await calls.mfaToken(user), otp: codeOf(secret) })).status;
      expect(await right()).to.equal(429);
      const link = new URL((await nextMessageTo(server, user, 1, 'link')).link ?? '');
      const browser = createAgent(server);
      const { action, fields } = readForm(await browser.get(link.pathname + link.search), 'ticket');
      await browser.request(action, { form: fields });
      expect(await right()).to.equal(200);
    } finally {
      await server.stop();
    }
  });
});

describe('a challenge', () => {
  it('is rejected for an application without an MFA grant', async () => {
    const clients = tenant.clients.map((client) => ({
      ...client,
      grant_types: client.grant_types.filter((type) => !type.includes('mfa-')),
    }));
    const server = await startServer({ tenant: { ...tenant, clients } });
    try {
      const calls = callsOf(server);
      const mfa_token = await calls.mfaToken('mfa-5@example.test');
      const answer = await calls.challenge({ mfa_token });
      expect(answer.status).to.equal(403);
      expect(answer.json().error).to.equal('unauthorized_client');
    } finally {
      await server.stop();
    }
  });
});
