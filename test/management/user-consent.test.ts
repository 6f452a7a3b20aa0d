// Consent to tokens of users for the Management API, and for other APIs that ask first-party applications, too.
import { expect } from 'chai';
import { createAgent } from '../support/agent.ts';
import { authorize, follow, logIn, payload, responseOf, token, USER, webRequest } from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';
import { tenantWith } from '../support/tenant.ts';
import { callsWith, type ManagementCall, managementToken, startManaged } from './support.ts';

const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange';
const ASKING = 'https://asking.example.test/';
const SECRET = { client_id: 'web', client_secret: 'web-secret' };
const tenant = tenantWith({
  change: {
    web: (one) => ({
      grant_types: [...one.grant_types, EXCHANGE],
      refresh_token: { policies: [{ audience: ASKING, scope: ['read:it'] }] },
    }),
  },
  add: {
    resourceServers: [
      {
        name: 'Asking',
        identifier: ASKING,
        scopes: [{ value: 'read:it' }, { value: 'write:it' }],
        skip_consent_for_verifiable_first_party_clients: false,
        allow_offline_access: true,
      },
    ],
  },
});

describe('consent of a first-party application’s users', () => {
  let server: TestServer;
  let call: ManagementCall;
  let audience: string;
  beforeEach(async () => {
    server = await startManaged(tenant);
    call = callsWith(server, await managementToken(server));
    audience = `${server.issuer}api/v2/`;
  });
  afterEach(() => server.stop());

  const password = (form: Record<string, string>) =>
    token(createAgent(server), {
      grant_type: 'password',
      ...SECRET,
      username: USER.email,
      password: USER.password,
      ...form,
    });
  const setManagementApi = async (body: object) =>
    call('PATCH', `/resource-servers/${encodeURIComponent(audience)}`, body);
  const ask = { scope: 'openid read:current_user' };

  it('is asked for tokens of the Management API until the tenant sets otherwise, then not even silently', async () => {
    const agent = createAgent(server);
    const asked = webRequest({ ...ask, audience });
    const page = await follow(agent, await logIn(agent, server, asked), server.url);
    expect(page.text).to.include('read:current_user');
    const silent = () => authorize(agent, webRequest({ ...ask, audience, prompt: 'none' }));
    expect(responseOf(await silent())).to.include({ error: 'consent_required' });

    const changed = await setManagementApi({ skip_consent_for_verifiable_first_party_clients: true });
    expect(changed.status, changed.text).to.equal(200);
    expect(changed.json()).to.include({ skip_consent_for_verifiable_first_party_clients: true });
    const read = await call('GET', `/resource-servers/${encodeURIComponent(audience)}`);
    expect(read.json()).to.deep.equal(changed.json());

    const { code } = responseOf(await silent());
    const { access_token } = (
      await token(agent, {
        grant_type: 'authorization_code',
        ...SECRET,
        code,
        redirect_uri: String(asked.redirect_uri),
      })
    ).json();
    const { sub } = payload(access_token);
    const self = await call('GET', `/users/${encodeURIComponent(String(sub))}`, undefined, access_token);
    expect(self.status, self.text).to.equal(200);
  });

  it('sets nothing else of the Management API', async () => {
    for (const body of [
      { scopes: [] },
      { signing_alg: 'HS256' },
      { enforce_policies: true },
      { skip_consent_for_verifiable_first_party_clients: 'yes' },
      { subject_type_authorization: { client: { policy: 'allow_all' } } },
      { skip_consent_for_verifiable_first_party_clients: true, allow_offline_access: true },
    ]) {
      const answer = await setManagementApi(body);
      expect(answer.status, JSON.stringify(body)).to.equal(400);
    }
    const read = await call('GET', `/resource-servers/${encodeURIComponent(audience)}`);
    expect(read.json()).to.include({ skip_consent_for_verifiable_first_party_clients: false });
  });

  it('keeps users’ tokens from applications where the tenant says so', async () => {
    const changed = await setManagementApi({
      token_lifetime: 600,
      subject_type_authorization: { user: { policy: 'deny_all' } },
    });
    expect(changed.status, changed.text).to.equal(200);
    expect(await password({ ...ask, audience })).to.have.property('status', 403);
    // Machines are not concerned, and get tokens of the new lifetime.
    const machine = payload(await managementToken(server));
    expect(Number(machine.exp) - Number(machine.iat)).to.equal(600);
  });

  it('is not needed where the user gives the application the password itself', async () => {
    const answer = await password({ ...ask, audience });
    expect(answer.status, answer.text).to.equal(200);
    const { access_token, scope } = answer.json();
    expect(scope.split(' ')).to.include('read:current_user');
    const { sub } = payload(access_token);
    const self = await call('GET', `/users/${encodeURIComponent(String(sub))}`, undefined, access_token);
    expect(self.status, self.text).to.equal(200);
    // Nothing is remembered: the same application is still asked at /authorize.
    const agent = createAgent(server);
    const page = await follow(
      agent,
      await logIn(agent, server, webRequest({ ...ask, audience })),
      server.url,
    );
    expect(page.text).to.include('read:current_user');
  });

  it('refuses an exchange for what the user was not asked for, and says so', async () => {
    const { access_token } = (await password({ audience: ASKING, scope: 'read:it write:it' })).json();
    const exchange = (form: Record<string, string>) =>
      token(createAgent(server), {
        grant_type: EXCHANGE,
        ...SECRET,
        subject_token: access_token,
        subject_token_type: 'urn:ietf:params:oauth:token-type:access_token',
        ...form,
      });
    const refused = await exchange({ audience: ASKING, scope: 'read:it' });
    expect([refused.status, refused.json().error]).to.deep.equal([403, 'consent_required']);
  });

  it('is not skipped by a refresh for another API', async () => {
    const { refresh_token } = (await password({ scope: 'openid offline_access' })).json();
    const refresh = (form: Record<string, string>) =>
      token(createAgent(server), { grant_type: 'refresh_token', ...SECRET, refresh_token, ...form });
    expect((await refresh({ audience: ASKING })).status).to.equal(400);
  });

  it('says with an empty scope that nothing of what was asked for was granted', async () => {
    const answer = await password({ audience, scope: 'no:such_scope' });
    expect(answer.json()).to.include({ scope: '' });
    expect((await password({})).json()).not.to.have.property('scope', '');
  });
});
