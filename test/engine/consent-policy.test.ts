// An API that requires consent at each request (`consent_policy`), of every application, whatever the user has
// allowed before.
import { expect } from 'chai';
import { callsOf, DEVICE_GRANT } from '../grants/tenant.ts';
import { callApi, startManaged } from '../management/support.ts';
import { type Agent, type Answer, createAgent, readForm } from '../support/agent.ts';
import {
  API,
  authorize,
  follow,
  logIn,
  payload,
  responseOf,
  token,
  USER,
  WEB_CALLBACK,
  webRequest,
} from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';
import { tenantWith } from '../support/tenant.ts';

const ASKING = 'https://transfers.example.test/';
const secret = { client_id: 'bank-app', client_secret: 'bank-secret' };
const asking = tenantWith({
  add: {
    clients: [
      {
        ...secret,
        name: 'Bank app',
        callbacks: [WEB_CALLBACK],
        grant_types: [
          'authorization_code',
          'refresh_token',
          'implicit',
          'password',
          'client_credentials',
          'urn:ietf:params:oauth:grant-type:token-exchange',
        ],
        refresh_token: { policies: [{ audience: ASKING, scope: ['make:transfers'] }] },
      },
      {
        client_id: 'partner',
        client_secret: 'partner-secret',
        name: 'Partner',
        is_first_party: false,
        third_party_security_mode: 'permissive',
        callbacks: [WEB_CALLBACK],
        grant_types: ['authorization_code'],
      },
      {
        client_id: 'tv',
        name: 'TV',
        app_type: 'native',
        token_endpoint_auth_method: 'none',
        grant_types: [DEVICE_GRANT],
      },
    ],
    resourceServers: [
      {
        name: 'Transfers',
        identifier: ASKING,
        scopes: [{ value: 'make:transfers', description: 'Make transfers' }],
        allow_offline_access: true,
        authorization_details: [{ type: 'payment' }],
        consent_policy: 'transactional-authorization-with-mfa',
      },
    ],
  },
  enable: ['bank-app', 'partner', 'tv'],
  clientGrants: [{ client_id: 'bank-app', audience: ASKING, scope: ['make:transfers'] }],
});

describe('an API with a consent_policy', () => {
  let server: TestServer;
  before(async () => {
    server = await startManaged(asking);
  });
  after(() => server.stop());

  const agent = () => createAgent(server);
  const request = (over: Record<string, string> = {}) =>
    webRequest({
      client_id: 'bank-app',
      audience: ASKING,
      scope: 'openid make:transfers offline_access',
      ...over,
    });
  const decide = async (browser: Agent, page: Answer, decision: string): Promise<Answer> => {
    const { action, fields } = readForm(page);
    return follow(browser, await browser.request(action, { form: { ...fields, decision } }), server.url);
  };
  const exchange = async (browser: Agent, answer: Answer) => {
    const form = { grant_type: 'authorization_code', code: String(responseOf(answer).code) };
    return (await token(browser, { ...form, redirect_uri: WEB_CALLBACK, ...secret })).json();
  };

  it('asks for consent each time, also for a first-party application, and then issues tokens that can be refreshed', async () => {
    const browser = agent();
    const first = await logIn(browser, server, request());
    expect(first.text).to.contain('Make transfers');
    const tokens = await exchange(browser, await decide(browser, first, 'accept'));
    expect(payload(tokens.access_token)).to.deep.include({ aud: [ASKING, `${server.issuer}userinfo`] });
    expect(String(payload(tokens.access_token).scope).split(' ')).to.include('make:transfers');
    const second = await follow(browser, await authorize(browser, request()), server.url);
    expect(second.text).to.contain('Make transfers').and.contain('value="accept"');
    const refreshed = await token(agent(), {
      grant_type: 'refresh_token',
      refresh_token: tokens.refresh_token,
      ...secret,
    });
    expect(refreshed.status, refreshed.text).to.equal(200);
  });

  it('asks for consent also without a scope of its own, and for each response type', async () => {
    for (const over of [{ scope: 'openid' }, { response_type: 'token', scope: 'openid' }]) {
      const page = await logIn(agent(), server, request(over));
      expect(page.status, page.location).to.equal(200);
      expect(page.text).to.contain('value="accept"');
    }
  });

  it('shows all requested scopes and details, not only those without an earlier consent', async () => {
    const browser = agent();
    const ofPartner = (scope: string) => request({ client_id: 'partner', scope });
    await decide(browser, await logIn(browser, server, ofPartner('openid make:transfers')), 'accept');
    const more = await authorize(browser, ofPartner('openid email make:transfers'));
    expect((await follow(browser, more, server.url)).text).to.contain('Make transfers');
    const details = JSON.stringify([{ type: 'payment', amount: 'twelve' }]);
    const both = await authorize(browser, request({ authorization_details: details }));
    expect((await follow(browser, both, server.url)).text)
      .to.contain('twelve')
      .and.contain('Make transfers');
  });

  it('refuses a silent request, and a request whose consent was denied', async () => {
    const browser = agent();
    await decide(browser, await logIn(browser, server, request()), 'accept');
    const silent = await authorize(browser, request({ prompt: 'none' }));
    expect(responseOf(silent).error).to.equal('consent_required');
    const again = await follow(browser, await authorize(browser, request()), server.url);
    expect(responseOf(await decide(browser, again, 'deny')).error).to.equal('access_denied');
    // Requests for another API are unaffected.
    const other = await authorize(browser, request({ audience: API, scope: 'openid read:things' }));
    expect(responseOf(other)).to.have.property('code');
  });

  it('refuses the password grant, a token exchange, and the refresh token of another API', async () => {
    const user = { username: USER.email, password: USER.password };
    const byPassword = await token(agent(), { grant_type: 'password', ...user, audience: ASKING, ...secret });
    expect([byPassword.status, byPassword.json().error]).to.deep.equal([403, 'unauthorized_client']);
    const browser = agent();
    const { access_token } = await exchange(
      browser,
      await decide(browser, await logIn(browser, server, request()), 'accept'),
    );
    const exchanged = await token(agent(), {
      grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
      subject_token: access_token,
      subject_token_type: 'urn:ietf:params:oauth:token-type:access_token',
      audience: ASKING,
      ...secret,
    });
    expect([exchanged.status, exchanged.json().error]).to.deep.equal([403, 'unauthorized_client']);
    const over = { audience: API, scope: 'openid read:things offline_access' };
    const { refresh_token } = await exchange(browser, await authorize(browser, request(over)));
    const other = { grant_type: 'refresh_token', refresh_token, audience: ASKING, ...secret };
    const refused = await token(agent(), other);
    expect([refused.status, refused.json().error]).to.deep.equal([400, 'invalid_target']);
    expect((await token(agent(), { ...other, audience: API })).status).to.equal(200);
  });

  it('asks for consent in the device flow', async () => {
    const { begin, poll, connect } = callsOf(() => server);
    const codes = (await begin({ audience: ASKING, scope: 'openid make:transfers' })).json();
    const browser = agent();
    const page = await connect(codes, browser);
    expect(page.text).to.contain('Make transfers');
    expect((await poll(codes.device_code)).json()).not.to.have.property('access_token');
    await decide(browser, page, 'deny');
    expect((await poll(codes.device_code)).json()).to.include({ error: 'access_denied' });
  });

  it('asks for no consent with client_credentials', async () => {
    const own = await token(agent(), { grant_type: 'client_credentials', audience: ASKING, ...secret });
    expect(own.json().scope, own.text).to.equal('make:transfers');
  });

  it('accepts one consent_policy from the Management API, and null to remove it', async () => {
    const path = `/resource-servers/${encodeURIComponent(ASKING)}`;
    expect((await callApi(server, 'PATCH', path, { consent_policy: 'sometimes' })).status).to.equal(400);
    expect((await callApi(server, 'PATCH', path, { consent_policy: null })).status).to.equal(200);
    const browser = agent();
    expect(responseOf(await logIn(browser, server, request()))).to.have.property('code');
    // A device code that was allowed without consent yields no token once the policy is set.
    const { begin, poll, connect } = callsOf(() => server);
    const codes = (await begin({ audience: ASKING, scope: 'openid make:transfers' })).json();
    await connect(codes, agent());
    const consent_policy = 'transactional-authorization-with-mfa';
    expect((await callApi(server, 'PATCH', path, { consent_policy })).status).to.equal(200);
    expect((await poll(codes.device_code)).json()).to.include({ error: 'invalid_grant' });
  });
});
