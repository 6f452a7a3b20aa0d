// Passkeys at a custom domain: a credential is valid only for the domain that it was created at.
import { expect } from 'chai';
import { createAgent } from '../../support/agent.ts';
import { tenant } from '../../support/flows.ts';
import { startServer, type TestServer } from '../../support/server.ts';
import { newCredential } from '../../support/software-key.ts';

const DOMAIN = 'login.example.test';
const GRANT = 'urn:okta:params:oauth:grant-type:webauthn';

describe('passkeys at a custom domain', () => {
  let server: TestServer;
  before(async () => {
    server = await startServer({
      tenant: {
        ...tenant,
        customDomains: [{ domain: DOMAIN, api_key: 'the-api-key-of-the-edge-of-login' }],
        clients: [
          ...tenant.clients,
          {
            client_id: 'app',
            name: 'app',
            app_type: 'spa',
            token_endpoint_auth_method: 'none',
            grant_types: [GRANT],
            organization_usage: 'allow',
          },
        ],
        databases: [
          {
            name: 'keys',
            enabled_clients: ['app'],
            options: { authentication_methods: { passkey: { enabled: true } } },
          },
          ...tenant.databases,
        ],
      },
    });
  });
  after(() => server.stop());

  const call = (path: string, json: object, host?: string) =>
    createAgent(server).request(path, { json, ...(host && { headers: { host } }) });
  const register = async (email: string, host?: string) =>
    (
      await call('/passkey/register', { client_id: 'app', realm: 'keys', user_profile: { email } }, host)
    ).json();
  const exchange = (registration: Record<string, any>, origin: string, more: object = {}) =>
    call('/oauth/token', {
      grant_type: GRANT,
      client_id: 'app',
      scope: 'openid',
      auth_session: registration.auth_session,
      authn_response: newCredential(registration.authn_params_public_key, origin),
      ...more,
    });

  it('have the domain as relying party, and are valid only at its pages', async () => {
    const registration = await register('domain-1@example.test', DOMAIN);
    expect(registration.authn_params_public_key.rp.id).to.equal(DOMAIN);
    const tokens = await exchange(registration, `https://${DOMAIN}`);
    expect(tokens.status, tokens.text).to.equal(200);
    const [user] = await server.users.withEmail('domain-1@example.test');
    const [kept] = await server.store.collection('passkeys').findBy('user', String(user?.id));
    expect(kept).to.include({ relying_party_id: DOMAIN });
    for (const origin of [server.url, 'https://elsewhere.example.test', `https://sub.${DOMAIN}`]) {
      const refused = await exchange(await register('domain-2@example.test', DOMAIN), origin);
      expect([refused.status, refused.json().error], origin).to.deep.equal([403, 'invalid_grant']);
    }
  });

  it('have our own host as relying party if the request did not come to a custom domain', async () => {
    const own = new URL(server.url).hostname;
    for (const host of [undefined, 'elsewhere.example.test']) {
      const answer = await call('/passkey/challenge', { client_id: 'app', realm: 'keys' }, host);
      if (answer.status === 200) expect(answer.json().authn_params_public_key.rpId).to.equal(own);
      else expect(answer.status).to.be.within(400, 421);
    }
    const refused = await exchange(await register('domain-3@example.test'), `https://${DOMAIN}`);
    expect(refused.json()).to.include({ error: 'invalid_grant' });
  });

  it('log in to organizations that the user is a member of, and to no others', async () => {
    const refused = await exchange(await register('domain-4@example.test'), server.url, {
      organization: 'org_acme',
    });
    expect(refused.status, refused.text).to.be.within(400, 403);
    expect(refused.json()).not.to.have.property('access_token');
  });
});
