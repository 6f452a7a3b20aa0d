// Grants that wait or continue another one: what has changed since then, and what nobody has proved.
import { generateKeyPairSync } from 'node:crypto';
import { expect } from 'chai';
import { callsOf as mfaCallsOf, tenant as mfaTenant } from '../factors/tenant.ts';
import { CIBA_GRANT, cibaTenant, callsOf as deviceCallsOf, deviceTenant, told } from '../grants/tenant.ts';
import { managementToken, startManaged } from '../management/support.ts';
import { createAgent, readForm } from '../support/agent.ts';
import {
  API,
  authorize,
  follow,
  logIn,
  payload,
  responseOf,
  submitLogin,
  tenant,
  token,
  USER,
  WEB_CALLBACK,
  webRequest,
} from '../support/flows.ts';
import { nextMessageTo } from '../support/inbox.ts';
import type { TestServer } from '../support/server.ts';

const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange';
const OTHER = 'https://other.example.test/';
const web = { client_id: 'web', client_secret: 'web-secret' };

const things = {
  client_id: 'things',
  name: 'The API itself',
  app_type: 'resource_server',
  client_secret: 'things-secret',
  resource_server_identifier: API,
  grant_types: [EXCHANGE],
};

const severalClient = {
  client_id: 'several',
  name: 'For several APIs',
  app_type: 'regular_web',
  client_secret: 'several-secret',
  callbacks: [WEB_CALLBACK],
  grant_types: ['authorization_code', 'refresh_token'],
  refresh_token: {
    rotation_type: 'non-rotating',
    expiration_type: 'expiring',
    policies: [{ audience: OTHER, scope: ['pay'] }],
  },
};

describe('grants that continue', () => {
  let server: TestServer;
  afterEach(() => server.stop());

  const manage = async (method: string, path: string, body?: unknown): Promise<void> => {
    const answer = await fetch(`${server.url}/api/v2${path}`, {
      method,
      headers: {
        authorization: `Bearer ${await managementToken(server)}`,
        'content-type': 'application/json',
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    expect(answer.status, path).to.be.below(300);
  };
  const exchange = (subject_token: string, over: Record<string, string> = {}) =>
    token(createAgent(server), {
      grant_type: EXCHANGE,
      client_id: 'things',
      client_secret: 'things-secret',
      subject_token,
      subject_token_type: 'urn:ietf:params:oauth:token-type:access_token',
      ...over,
    });

  it('exchange a token for no ID token, which could be exchanged for more, nor when its application is gone', async () => {
    server = await startManaged({ ...tenant, clients: [...tenant.clients, things] });
    const { access_token } = (
      await token(createAgent(server), {
        grant_type: 'password',
        ...web,
        username: USER.email,
        password: USER.password,
        scope: 'openid read:things',
        audience: API,
      })
    ).json();
    const exchanged = (await exchange(access_token)).json();
    expect(exchanged.scope).to.equal('openid read:things');
    expect(exchanged).not.to.have.property('id_token');
    await manage('DELETE', '/clients/web');
    expect(told(await exchange(access_token))[1]).to.equal('invalid_request');
  });

  it('give the holder of a token no access to the second factors of its user', async () => {
    server = await startManaged({
      ...mfaTenant,
      guardianPolicies: { policies: [] },
      clients: [...mfaTenant.clients, things],
      resourceServers: tenant.resourceServers,
    });
    const login = await mfaCallsOf(server).login('mfa-1@example.test', { audience: API });
    await manage('PUT', '/guardian/policies', ['all-applications']);
    const answer = await exchange(login.json().access_token);
    expect(told(answer).slice(0, 2)).to.deep.equal([403, 'invalid_grant']);
    expect(answer.json()).not.to.have.property('mfa_token');
  });

  it("give a device no tokens for an application that has become a third party's, whose user was not asked for consent", async () => {
    server = await startManaged(deviceTenant);
    const { begin, connect, poll } = deviceCallsOf(() => server);
    const codes = (await begin()).json();
    await connect(codes);
    await manage('PATCH', '/clients/tv', {
      is_first_party: false,
      third_party_security_mode: 'permissive',
    });
    expect(told(await poll(codes.device_code))[1]).to.equal('invalid_grant');
  });

  it('give such an application none after an approval, which a blocked user or a new password ends, too', async () => {
    server = await startManaged({ ...cibaTenant, guardianPolicies: { policies: [] } });
    const client = { client_id: 'mail-bank', client_secret: 'mail-bank-secret' };
    const sub = (await server.users.withEmail(USER.email))[0]?.id ?? '';
    const login_hint = JSON.stringify({ format: 'iss_sub', iss: server.issuer, sub });
    let sent = 0;
    /** @param change what happens while the page of the approval is open. */
    const approved = async (change: () => Promise<unknown>): Promise<string> => {
      const asked = await createAgent(server).request('/bc-authorize', {
        form: { ...client, scope: 'openid', requested_expiry: '3600', login_hint },
      });
      const agent = createAgent(server);
      const { link = '' } = await nextMessageTo(server, USER.email, ++sent, 'link');
      const page = await submitLogin(agent, server, await follow(agent, await agent.get(link), server.url));
      await change();
      const { action, fields } = readForm(page, 'ticket');
      await agent.request(action, { form: { ...fields, decision: 'accept' } });
      const { auth_req_id } = asked.json();
      return told(await token(agent, { grant_type: CIBA_GRANT, ...client, auth_req_id }))[1];
    };
    const setFirstParty = (is_first_party: boolean) =>
      manage('PATCH', '/clients/mail-bank', { is_first_party });
    expect(await approved(() => setFirstParty(false))).to.equal('unauthorized_client');
    await setFirstParty(true);
    expect(await approved(() => server.users.setPassword(sub, USER.password))).to.equal('invalid_grant');
    expect(await approved(() => server.users.update(sub, { blocked: true }))).to.equal('unauthorized');
  });

  it('approve a login for an organization only if its user is a member and the tenant allows its name', async () => {
    const bank = cibaTenant.clients.find(({ client_id }) => client_id === 'mail-bank');
    server = await startManaged({
      ...cibaTenant,
      guardianPolicies: { policies: [] },
      organizations: [{ id: 'org_acme', name: 'acme', display_name: 'Acme' }],
      clients: [
        ...cibaTenant.clients.filter((one) => one !== bank),
        { ...bank, organization_usage: 'allow' },
      ],
    });
    const client = { client_id: 'mail-bank', client_secret: 'mail-bank-secret' };
    const sub = (await server.users.withEmail(USER.email))[0]?.id ?? '';
    const login_hint = JSON.stringify({ format: 'iss_sub', iss: server.issuer, sub });
    const ask = (organization: string) =>
      createAgent(server).request('/bc-authorize', {
        form: { ...client, scope: 'openid', requested_expiry: '3600', login_hint, organization },
      });
    expect(told(await ask('acme'))[1]).to.equal('invalid_request');
    const asked = (await ask('org_acme')).json();
    const agent = createAgent(server);
    const { link = '' } = await nextMessageTo(server, USER.email, 1, 'link');
    const page = await submitLogin(agent, server, await follow(agent, await agent.get(link), server.url));
    const { action, fields } = readForm(page, 'ticket');
    await agent.request(action, { form: { ...fields, decision: 'accept' } });
    const { auth_req_id } = asked;
    expect((await token(agent, { grant_type: CIBA_GRANT, ...client, auth_req_id })).status).to.equal(403);
  });

  it('put no permission of one API into a token for another', async () => {
    const details = { authorization_details: [{ type: 'payment' }] };
    server = await startManaged({
      ...tenant,
      clients: [...tenant.clients, severalClient],
      databases: tenant.databases.map((one) => ({
        ...one,
        enabled_clients: [...one.enabled_clients, 'several'],
      })),
      resourceServers: [
        { ...tenant.resourceServers[0], ...details },
        {
          name: 'Other API',
          identifier: OTHER,
          scopes: [{ value: 'pay' }],
          allow_offline_access: true,
          ...details,
        },
      ],
    });
    const browser = createAgent(server);
    const asked = webRequest({
      client_id: 'several',
      audience: API,
      scope: 'openid offline_access read:things',
      authorization_details: JSON.stringify([{ type: 'payment', amount: '123.50' }]),
    });
    const { action, fields } = readForm(await logIn(browser, server, asked));
    const posted = await browser.request(action, { form: { ...fields, decision: 'accept' } });
    const { code } = responseOf(await follow(browser, posted, server.url));
    const client = { client_id: 'several', client_secret: 'several-secret' };
    const form = { grant_type: 'authorization_code', ...client, code, redirect_uri: WEB_CALLBACK };
    const { refresh_token } = (await token(browser, form)).json();
    const refresh = (audience: string) =>
      token(browser, { grant_type: 'refresh_token', ...client, refresh_token, audience });
    const other = (await refresh(OTHER)).json();
    expect(payload(other.access_token).scope).to.contain('pay');
    expect(payload(other.access_token)).not.to.have.property('authorization_details');
    expect(other).not.to.have.property('authorization_details');
    expect(payload((await refresh(API)).json().access_token)).to.have.property('authorization_details');
  });

  it('end a request that was pushed unsigned once the application has to sign', async () => {
    server = await startManaged(tenant);
    const pushed = await createAgent(server).request('/oauth/par', { form: { ...webRequest(), ...web } });
    const { publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
    const pem = publicKey.export({ type: 'spki', format: 'pem' });
    await manage('PATCH', '/clients/web', {
      signed_request_object: {
        required: true,
        credentials: [{ name: 'key', credential_type: 'public_key', pem, alg: 'RS256' }],
      },
    });
    const { request_uri } = pushed.json();
    const answer = await authorize(createAgent(server), { client_id: 'web', request_uri });
    expect(responseOf(answer).error).to.equal('invalid_request');
  });
});
