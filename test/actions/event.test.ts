// The event of actions, as published: the members that scripts rely on are present in every kind of login.
import { expect } from 'chai';
import { tenant as base, callsOf, codeOf, factors, OTP_GRANT } from '../factors/tenant.ts';
import { startManaged } from '../management/support.ts';
import { createAgent } from '../support/agent.ts';
import { API, payload, spaTokens, token, USER } from '../support/flows.ts';
import { nextMessageTo } from '../support/inbox.ts';
import type { TestServer } from '../support/server.ts';
import { until } from '../support/wait-until.ts';
import { bindActions, eventsOf, managed } from './support.ts';

const CLAIM = 'https://example.test/event';
const tenant = {
  ...base,
  guardianFactors: factors('otp', 'recovery-code'),
  guardianPolicies: { policies: [] },
};

describe('the event of actions', () => {
  let server: TestServer;
  before(async () => {
    server = await startManaged(tenant);
    const code = `async (event, api) => {
      const { secrets, configuration, ...told } = event;
      api.accessToken.setCustomClaim('${CLAIM}', told);
      if (told.user?.email === 'methods@example.test') api.multifactor.enable('any');
    };`;
    await bindActions(server, 'post-login', { code: `exports.onExecutePostLogin = ${code}` });
    await bindActions(server, 'credentials-exchange', {
      code: `exports.onExecuteCredentialsExchange = ${code}`,
    });
  });
  after(() => server.stop());

  const ask = async (fields: Record<string, string>) => {
    const answer = await token(createAgent(server), {
      client_id: 'web',
      client_secret: 'web-secret',
      audience: API,
      ...fields,
    });
    expect(answer.status, answer.text).to.equal(200);
    return payload(answer.json().access_token)[CLAIM];
  };
  const byPassword = (email: string) =>
    ask({ grant_type: 'password', username: email, password: USER.password, scope: 'openid' });
  const signUp = async (email: string) => {
    const json = { client_id: 'web', connection: 'users', email, password: USER.password };
    expect((await createAgent(server).request('/dbconnections/signup', { json })).status).to.equal(200);
  };

  it('counts the login that it is about, with every grant', async () => {
    await signUp('counted@example.test');
    expect((await byPassword('counted@example.test')).stats).to.deep.equal({ logins_count: 1 });
    expect((await byPassword('counted@example.test')).stats).to.deep.equal({ logins_count: 2 });
    const asked = { audience: API, scope: 'openid offline_access' };
    const tokens = await spaTokens(createAgent(server), server, asked);
    expect(payload(tokens.access_token)[CLAIM].stats).to.deep.equal({ logins_count: 1 });
    const fields = { grant_type: 'refresh_token', client_id: 'spa', refresh_token: tokens.refresh_token };
    const again = (await token(createAgent(server), fields)).json();
    expect(payload(again.access_token)[CLAIM].stats).to.deep.equal({ logins_count: 1 });
  });

  it('has the connection and the API of a refresh', async () => {
    const { refresh_token, access_token } = await spaTokens(createAgent(server), server, {
      audience: API,
      scope: 'openid offline_access',
    });
    const fields = { grant_type: 'refresh_token', client_id: 'spa', refresh_token };
    const { connection, resource_server, request } = payload(
      (await token(createAgent(server), fields)).json().access_token,
    )[CLAIM];
    expect(connection).to.include({ name: 'users', strategy: 'auth0' });
    expect(connection).to.deep.equal(payload(access_token)[CLAIM].connection);
    expect(resource_server).to.deep.equal({ identifier: API });
    expect(request.body).not.to.have.property('refresh_token');
  });

  it('lists the APIs that an application may have refresh tokens for', async () => {
    const policies = [{ audience: API, scope: ['read:things'] }];
    const refreshing = { rotation_type: 'rotating', expiration_type: 'expiring', policies };
    const set = await managed(server, 'PATCH', '/clients/web', { refresh_token: refreshing });
    expect(set.status, JSON.stringify(set.body)).to.equal(200);
    const { client } = await byPassword(USER.email);
    expect(client.refresh_token).to.deep.equal({ policies });
    await managed(server, 'PATCH', '/clients/web', { refresh_token: { ...refreshing, policies: [] } });
    expect((await byPassword(USER.email)).client.refresh_token).to.deep.equal({ policies: [] });
    await managed(server, 'PATCH', '/clients/web', { refresh_token: null });
    expect((await byPassword(USER.email)).client).not.to.have.property('refresh_token');
  });

  it('names the API as the application does, in every request', async () => {
    for (const grant of [
      { grant_type: 'client_credentials' },
      { grant_type: 'password', username: USER.email, password: USER.password, scope: 'openid' },
    ]) {
      const { request } = await ask(grant);
      expect(request.body).to.include({ audience: API }).and.not.have.property('resource');
      expect(request.body).not.to.have.any.keys('password', 'client_secret');
    }
    const tokens = await spaTokens(createAgent(server), server, { audience: API });
    expect(payload(tokens.access_token)[CLAIM].request.query).to.include({ audience: API });
    expect(tokens.access_token).not.to.contain('urn:gatehouse');
  });

  it('has the id of a browser login in the log, its language, and when its session began', async () => {
    const tokens = await spaTokens(createAgent(server), server, {
      audience: API,
      ui_locales: 'de en',
      correlation_id: 'of-the-app-17',
    });
    const { transaction, session } = payload(tokens.access_token)[CLAIM];
    expect(transaction.id).to.be.a('string');
    await until(async () =>
      (await eventsOf(server, 's')).some((recorded) => recorded.transaction === transaction.id),
    );
    expect(transaction).to.include({ locale: 'de', correlation_id: 'of-the-app-17' });
    expect(transaction.ui_locales).to.deep.equal(['de', 'en']);
    expect(session.created_at).to.equal(session.authenticated_at);
    expect((await ask({ grant_type: 'client_credentials' })).transaction).not.to.have.property('id');
  });

  it('names authentication methods by their published names', async () => {
    const namesOf = ({
      authentication,
    }: {
      authentication: { methods: { name: string; type?: string }[] };
    }) => authentication.methods.map(({ name, type }) => [name, type].filter(Boolean).join(' '));
    expect(namesOf(await byPassword(USER.email))).to.deep.equal(['pwd']);
    await signUp('methods@example.test');
    const calls = callsOf(server);
    const { secret } = await calls.enrollOtp('methods@example.test');
    const mfa_token = await calls.mfaToken('methods@example.test', { audience: API });
    const both = await calls.verify('otp', { mfa_token, otp: codeOf(secret, Date.now() + 30_000) });
    expect(namesOf(payload(both.json().access_token)[CLAIM])).to.deep.equal(['pwd', 'mfa']);
    const json = {
      client_id: 'web',
      client_secret: 'web-secret',
      connection: 'email',
      email: 'coded@example.test',
      send: 'code',
    };
    await createAgent(server).request('/passwordless/start', { json });
    const { code = '' } = await nextMessageTo(server, 'coded@example.test', 1, 'code');
    const coded = { grant_type: OTP_GRANT, realm: 'email', username: 'coded@example.test', otp: code };
    expect(namesOf(await ask({ ...coded, scope: 'openid' }))).to.deep.equal(['email']);
  });
});
