// The tenant's log events of logins and token exchanges: a success is logged once, at the end, and each type only
// where it occurs.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { EVENTS } from '../../src/server/features.ts';
import { callsOf, codeOf, MFA_GRANTS, tenant } from '../factors/tenant.ts';
import { samlClient } from '../saml/support.ts';
import { type Agent, createAgent, readForm } from '../support/agent.ts';
import {
  byCode,
  byLink,
  byPassword,
  bySignUp,
  openPage,
  REALM_GRANT,
  ticketFor,
} from '../support/browser-logins.ts';
import {
  authorize,
  follow,
  pkce,
  responseOf,
  SPA_CALLBACK,
  spaRequest,
  submitLogin,
  THIRD_CALLBACK,
  token,
  USER,
  WEB_CALLBACK,
  webRequest,
} from '../support/flows.ts';
import { nextMessageTo } from '../support/inbox.ts';
import { startServer, type TestServer } from '../support/server.ts';

const WEB = { client_id: 'web', client_secret: 'web-secret' };
const ORIGIN = new URL(SPA_CALLBACK).origin;
const MFA = 'http://schemas.openid.net/pape/policies/2007/06/multi-factor';

describe('log events', () => {
  let server: TestServer;
  let agent: Agent;
  let seen = new Set<string>();
  let people = 0;

  before(async () => {
    const [users, ...others] = tenant.databases;
    server = await startServer({
      tenant: {
        ...tenant,
        clients: [...tenant.clients, samlClient('saml')],
        databases: [{ ...users, enabled_clients: [...users!.enabled_clients, 'saml'] }, ...others],
        guardianPolicies: { policies: [] },
      },
    });
  });
  after(() => server.stop());
  beforeEach(async () => {
    agent = createAgent(server);
    await newEvents();
  });

  /** Returns the events since the last call. */
  const newEvents = async () => {
    await server.tenant.close();
    const { records } = await server.store.collection('logs').list({ limit: 1000 });
    const fresh = records.filter(({ id }) => !seen.has(id));
    seen = new Set(records.map(({ id }) => id));
    return fresh;
  };
  const types = async () => (await newEvents()).map(({ type }) => type).sort();
  const someone = () => `told-${++people}@example.test`;
  /** Makes a user with an authenticator app. */
  const enrolled = async () => {
    const email = `mfa-${10 + ++people}@example.test`;
    const user = await server.users.findInConnection({ name: 'users' }, email);
    await server.users.update(user!.id, { multifactor: ['any'] });
    const secrets = await callsOf(server).enrollOtp(email);
    server.tick(31_000);
    await newEvents();
    return { email, ...secrets };
  };
  const grant = (fields: Record<string, unknown>) =>
    token(agent, { ...WEB, scope: 'openid', ...fields } as Record<string, string>);
  const passwordGrant = (username: string, password = USER.password) =>
    grant({ grant_type: 'password', username, password });

  it('have no declared type that nothing writes', () => {
    const src = fileURLToPath(new URL('../../src', import.meta.url));
    const files = readdirSync(src, { recursive: true, encoding: 'utf8' }).filter((file) =>
      file.endsWith('.ts'),
    );
    const all = files.map((file) => readFileSync(join(src, file), 'utf8')).join('\n');
    const isUsed = (code: string) => new RegExp(`[eE]vents\\.${code}\\b`).test(all);
    expect(Object.keys(EVENTS).filter((code) => !isUsed(code))).to.deep.equal([]);
  });

  describe('of a login in the browser', () => {
    const ways: [string, () => Promise<unknown>, string[]][] = [
      ['a password', () => byPassword(agent, server, webRequest()), ['s']],
      ['signing up', () => bySignUp(agent, server, webRequest(), someone()), ['s', 'ss', 'svr']],
      [
        'a code',
        () => byCode(agent, server, webRequest(), { connection: 'email', address: someone() }),
        ['cls', 's', 'ss'],
      ],
      ['a link', () => byLink(agent, server, WEB, someone()), ['cls', 's', 'ss']],
      [
        'a session that is there',
        async () => {
          await byPassword(agent, server, webRequest());
          await authorize(agent, webRequest({ prompt: 'none' }));
        },
        ['s'],
      ],
    ];
    for (const [way, logIn, expected] of ways) {
      it(`include exactly one success of ${way}`, async () => {
        await logIn();
        expect(await types()).to.deep.equal(expected);
      });
    }

    it('contain user, address and connection', async () => {
      await byPassword(agent, server, webRequest());
      const [event] = await newEvents();
      const user = await server.users.findInConnection({ name: 'users' }, USER.email);
      expect(event).to.deep.include({
        type: 's',
        client_id: 'web',
        connection: 'users',
        user_id: user!.id,
        user_name: USER.email,
        ip: '127.0.0.1',
      });
    });

    it('include no success before the second factor', async () => {
      const { email, secret } = await enrolled();
      const page = await byPassword(agent, server, webRequest({ acr_values: MFA }), email);
      expect(await types()).to.deep.equal(['mfar']);
      const { action, fields } = readForm(page, 'code');
      const posted = await agent.request(action, { form: { ...fields, code: codeOf(secret) } });
      expect(await types(), 'on its way back').to.deep.equal(['gd_auth_succeed']);
      expect(responseOf(await follow(agent, posted, server.url))).to.have.property('code');
      expect(await types()).to.deep.equal(['s']);
    });

    it('include one success, counted once, when consent is asked for afterwards', async () => {
      const email = someone();
      await bySignUp(createAgent(server), server, webRequest(), email);
      const before = await server.users.findInConnection({ name: 'users' }, email);
      await newEvents();
      const request = webRequest({ client_id: 'third', redirect_uri: THIRD_CALLBACK });
      const page = await byPassword(agent, server, request, email);
      expect(await types()).to.deep.equal(['s']);
      const { action, fields } = readForm(page, '_csrf');
      const posted = await agent.request(action, { form: { ...fields, decision: 'accept' } });
      expect(responseOf(await follow(agent, posted, server.url))).to.have.property('code');
      expect(await types()).to.deep.equal([]);
      const after = await server.users.findInConnection({ name: 'users' }, email);
      expect(after!.logins_count - before!.logins_count).to.equal(1);
    });

    it('include a failure, and no success, for a user who is not admitted', async () => {
      await byPassword(agent, server, webRequest(), 'blocked@example.test');
      const events = await newEvents();
      expect(events.map(({ type, description }) => [type, description])).to.deep.equal([
        ['f', 'user is blocked'],
      ]);
    });

    it('include wrong passwords and unknown users', async () => {
      const page = await openPage(agent, server, webRequest());
      await submitLogin(agent, server, page, { email: USER.email, password: 'wrong' });
      await submitLogin(agent, server, page, { email: 'nobody@example.test', password: 'wrong' });
      expect(await types()).to.deep.equal(['fp', 'fu']);
    });
  });

  describe('of one login', () => {
    const transactionsOf = (events: readonly { transaction?: string }[]) => [
      ...new Set(events.map(({ transaction }) => transaction)),
    ];

    it('have one transaction id from the first wrong password to the end', async () => {
      const { email, secret } = await enrolled();
      const opened = await openPage(agent, server, webRequest({ acr_values: MFA }));
      const wrong = await submitLogin(agent, server, opened, { email, password: 'wrong' });
      const page = await submitLogin(agent, server, wrong, { email, password: USER.password });
      const { action, fields } = readForm(page, 'code');
      const bad = await agent.request(action, { form: { ...fields, code: '000000' } });
      const form = { ...readForm(bad, 'code').fields, code: codeOf(secret) };
      await follow(agent, await agent.request(action, { form }), server.url);
      const events = await newEvents();
      expect(events.map(({ type }) => type).sort()).to.deep.equal([
        'fp',
        'gd_auth_failed',
        'gd_auth_succeed',
        'mfar',
        's',
      ]);
      const [transaction, ...others] = transactionsOf(events);
      expect(transaction).to.match(/^[\w-]{21,}$/);
      expect(others).to.deep.equal([]);
    });

    it('have another transaction id than those of the same user in another browser', async () => {
      await byPassword(agent, server, webRequest());
      await byPassword(createAgent(server), server, webRequest());
      expect(transactionsOf(await newEvents())).to.have.length(2);
    });

    it('have the same transaction id when one token request writes several', async () => {
      await passwordGrant(USER.email);
      expect(transactionsOf(await newEvents())).to.have.length(1);
    });
  });

  describe('of a login ticket', () => {
    const credentials = { credential_type: REALM_GRANT, realm: 'users', username: USER.email };
    const use = (login_ticket: string) =>
      openPage(agent, server, {
        client_id: 'spa',
        response_type: 'id_token',
        redirect_uri: SPA_CALLBACK,
        scope: 'openid',
        nonce: 'n',
        login_ticket,
      });

    it('include its issue, and the login with it', async () => {
      const ticket = await ticketFor(agent, ORIGIN, { ...credentials, password: USER.password });
      expect(await types()).to.deep.equal(['scoa']);
      await use(ticket);
      expect(await types()).to.deep.equal(['s']);
    });

    it('include refusals for wrong credentials and from other origins', async () => {
      const ask = (password: string, origin = ORIGIN) =>
        agent.request('/co/authenticate', {
          json: { client_id: 'spa', ...credentials, password },
          headers: { origin },
        });
      await ask('wrong');
      const events = await newEvents();
      expect(events.map(({ type }) => type).sort()).to.deep.equal(['fcoa', 'fp']);
      expect(events.find(({ type }) => type === 'fcoa')).to.include({
        client_id: 'spa',
        description: 'Wrong email or password.',
      });
      await ask(USER.password, 'https://elsewhere.example.test');
      expect(await types()).to.deep.equal(['fcoa']);
    });
  });

  describe('of the token endpoint', () => {
    it('include a password that was exchanged, and a wrong one', async () => {
      expect((await passwordGrant(USER.email)).status).to.equal(200);
      expect(await types()).to.deep.equal(['s', 'sepft']);
      await passwordGrant(USER.email, 'wrong');
      expect(await types()).to.deep.equal(['fepft', 'fp']);
      await passwordGrant('blocked@example.test');
      expect(await types()).to.deep.equal(['f', 'fepft']);
    });

    it('include no success for mfa_required, but for the request that completes it', async () => {
      const { email, secret } = await enrolled();
      const { mfa_token } = (await passwordGrant(email)).json();
      expect(await types()).to.deep.equal(['mfar']);
      await grant({ grant_type: MFA_GRANTS[0], mfa_token, otp: '000000' });
      expect(await types()).to.deep.equal(['feotpft', 'gd_auth_failed']);
      expect((await grant({ grant_type: MFA_GRANTS[0], mfa_token, otp: codeOf(secret) })).status).to.equal(
        200,
      );
      expect(await types()).to.deep.equal(['gd_auth_succeed', 's', 'seotpft']);
    });

    it('include a recovery code that was right, and a wrong one', async () => {
      const { email, recoveryCode } = await enrolled();
      const { mfa_token } = (await passwordGrant(email)).json();
      await newEvents();
      const recover = (recovery_code: string) =>
        grant({ grant_type: MFA_GRANTS[2], mfa_token, recovery_code });
      await recover('A'.repeat(24));
      expect(await types()).to.deep.equal(['fercft', 'gd_recovery_failed']);
      expect((await recover(recoveryCode)).status).to.equal(200);
      expect(await types()).to.deep.equal(['gd_recovery_succeed', 's', 'sercft']);
    });

    it('include out-of-band challenges, and no failure while one is pending', async () => {
      const email = `mfa-${10 + ++people}@example.test`;
      const user = await server.users.findInConnection({ name: 'users' }, email);
      await server.users.update(user!.id, { multifactor: ['any'] });
      const { mfa_token } = (await passwordGrant(email)).json();
      const { oob_code } = (
        await callsOf(server).associate(mfa_token, {
          authenticator_types: ['oob'],
          oob_channels: ['sms'],
          phone_number: '+16505550177',
        })
      ).json();
      await newEvents();
      const answer = (binding_code: string) =>
        grant({ grant_type: MFA_GRANTS[1], mfa_token, oob_code, binding_code });
      await answer('000000');
      expect(await types()).to.deep.equal(['feoobft', 'gd_auth_failed']);
      const { code = '' } = await nextMessageTo(server, '+16505550177', 1, 'code');
      expect((await answer(code)).status).to.equal(200);
      expect(await types()).to.deep.equal(['gd_auth_succeed', 'gd_enrollment_complete', 's', 'seoobft']);
    });

    it('include a wrong passwordless code, and the login with a right one', async () => {
      const email = someone();
      const exchange = (otp: string) =>
        grant({
          grant_type: 'http://auth0.com/oauth/grant-type/passwordless/otp',
          realm: 'email',
          username: email,
          otp,
        });
      await agent.request('/passwordless/start', {
        json: { ...WEB, connection: 'email', email, send: 'code' },
      });
      await newEvents();
      await exchange('000000');
      expect(await types()).to.deep.equal(['fepotpft', 'fp']);
      const { code = '' } = await nextMessageTo(server, email, 1, 'code');
      expect((await exchange(code)).status).to.equal(200);
      expect(await types()).to.deep.equal(['s', 'ss']);
    });

    it('include a code that could not be exchanged, with its user where known', async () => {
      const { code } = responseOf(await byPassword(agent, server, webRequest()));
      const user = await server.users.findInConnection({ name: 'users' }, USER.email);
      await newEvents();
      const exchange = () =>
        grant({ grant_type: 'authorization_code', code, redirect_uri: WEB_CALLBACK, scope: undefined });
      expect((await exchange()).status).to.equal(200);
      expect(await types()).to.deep.equal([]);
      await exchange();
      await grant({ grant_type: 'authorization_code', code: 'none', redirect_uri: WEB_CALLBACK });
      const events = await newEvents();
      expect(events.map(({ type, client_id }) => [type, client_id])).to.deep.equal([
        ['feacft', 'web'],
        ['feacft', 'web'],
      ]);
      expect(user).to.not.equal(undefined);
    });

    it('include an unknown refresh token, and one that was used before', async () => {
      const { verifier, challenge } = pkce();
      const request = spaRequest(challenge, { scope: 'openid offline_access' });
      const { code } = responseOf(await byPassword(agent, server, request));
      const spa = { client_id: 'spa' };
      const first = await token(agent, {
        ...spa,
        grant_type: 'authorization_code',
        code,
        code_verifier: verifier,
        redirect_uri: SPA_CALLBACK,
      });
      await newEvents();
      const refresh = (refresh_token: string) =>
        token(agent, { ...spa, grant_type: 'refresh_token', refresh_token });
      expect((await refresh(first.json().refresh_token)).status).to.equal(200);
      expect(await types()).to.deep.equal([]);
      await refresh(first.json().refresh_token);
      const user = await server.users.findInConnection({ name: 'users' }, USER.email);
      const [reuse, ...others] = await newEvents();
      expect(reuse).to.include({ type: 'ferrt', client_id: 'spa', user_id: user!.id });
      expect(others).to.deep.equal([]);
      await refresh('none');
      expect(await types()).to.deep.equal(['fertft']);
    });

    it('include wrong credentials of an application', async () => {
      await token(agent, {
        client_id: 'm2m',
        client_secret: 'wrong-secret',
        grant_type: 'client_credentials',
      });
      const [event] = await newEvents();
      expect(event).to.include({ type: 'feccft', client_id: 'm2m', description: 'Unauthorized' });
    });
  });

  describe('of links', () => {
    it('include a password that was not changed, and one that was', async () => {
      const email = someone();
      await bySignUp(agent, server, webRequest(), email);
      await agent.request('/dbconnections/change_password', {
        json: { client_id: 'web', email, connection: 'users' },
      });
      const sent = await nextMessageTo(server, email, 2, 'link');
      const page = await agent.get(sent.link ?? '');
      const { action, fields } = readForm(page, 'password');
      const set = (password: string, ticket = fields.ticket ?? '') =>
        agent.request(action, { form: { ...fields, ticket, password, repeat: password } });
      await newEvents();
      const user = await server.users.findInConnection({ name: 'users' }, email);
      await set('weak');
      const [weak] = await newEvents();
      expect(weak).to.include({ type: 'fcp', user_id: user!.id, description: 'weak-password' });
      await set('A-Long-New-Word-9');
      expect(await types()).to.deep.equal(['scp']);
      await set('A-Long-New-Word-8');
      expect(await types()).to.deep.equal(['fcp']);
    });

    it('include an e-mail address that was not verified, and one that was', async () => {
      const email = someone();
      await bySignUp(agent, server, webRequest(), email);
      const page = await agent.get((await nextMessageTo(server, email, 1, 'link')).link ?? '');
      const { action, fields } = readForm(page, 'ticket');
      await newEvents();
      await agent.request(action, { form: fields });
      expect(await types()).to.deep.equal(['sv']);
      await agent.request(action, { form: fields });
      expect(await types()).to.deep.equal(['fv']);
    });
  });
});
