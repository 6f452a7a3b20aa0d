// Pushed and signed authorization requests and signed responses with published SDKs, unmodified.
import { expect } from 'chai';
import { exportJWK } from 'jose';
import { createAgent } from '../support/agent.ts';
import { clientKey } from '../support/client-key.ts';
import { API, follow, payload, submitLogin, tenant, WEB_CALLBACK } from '../support/flows.ts';
import { type SdkProcess, startSdkProcess } from '../support/sdk.ts';
import { startServer, type TestServer } from '../support/server.ts';

const pair = await clientKey('ES256');
const key = await exportJWK(pair.privateKey);
const clients = tenant.clients.map((client) =>
  client.client_id === 'web'
    ? { ...client, oidc_conformant: true, signed_request_object: { credentials: [pair.credential] } }
    : client,
);

describe('pushed and signed requests of published SDKs', () => {
  let server: TestServer;
  let sdk: SdkProcess;
  before(async () => {
    server = await startServer({ tenant: { ...tenant, clients } });
    sdk = await startSdkProcess(server.caFile);
  });
  after(async () => {
    await sdk?.stop();
    await server?.stop();
  });

  /** Follows an authorization URL as the user's browser does. @returns the callback URL. */
  const browse = async (url: string): Promise<string> => {
    const browser = createAgent(server);
    const page = await follow(browser, await browser.get(url), server.url);
    return (await submitLogin(browser, server, page)).location;
  };
  const client = () => ({ issuer: server.issuer, clientId: 'web', secret: 'web-secret' });
  const parameters = {
    response_type: 'code',
    redirect_uri: WEB_CALLBACK,
    scope: 'openid email read:things',
    audience: API,
    state: 'the-state',
  };

  const kinds: [string, { par?: true; key?: object; jarm?: true }][] = [
    ['PAR', { par: true }],
    ['JAR', { key }],
    ['JARM', { jarm: true }],
    ['PAR, JAR and JARM', { par: true, key, jarm: true }],
  ];
  for (const [what, how] of kinds) {
    it(`log in with openid-client and ${what}`, async () => {
      const { url, verifier } = await sdk.call('oidc-request', { ...client(), ...how, parameters });
      const query = new URL(url).searchParams;
      expect([query.has('request_uri'), query.has('request')]).to.deep.equal([
        how.par === true,
        how.par === undefined && how.key !== undefined,
      ]);
      const callback = await browse(url);
      expect(new URL(callback).searchParams.has('response')).to.equal(how.jarm === true);
      const args = { ...client(), ...how, callback, verifier, state: 'the-state' };
      const { tokens, claims } = await sdk.call('oidc-response', args);
      expect(claims.email).to.equal('ada@example.test');
      expect(payload(tokens.access_token).aud).to.include(API);
    });
  }

  it('let openid-client reject a response of another server (mix-up, RFC 9207)', async () => {
    const { url, verifier } = await sdk.call('oidc-request', { ...client(), par: true, parameters });
    const callback = new URL(await browse(url));
    expect(callback.searchParams.get('iss')).to.equal(server.issuer);
    const args = { ...client(), verifier, state: 'the-state' };
    const refusal = async () =>
      sdk.call('oidc-response', { ...args, callback: callback.href }).then(
        () => 'taken',
        (thrown: Error & { code?: string }) => thrown.code,
      );
    callback.searchParams.set('iss', 'https://evil.example/');
    expect(await refusal()).to.equal('OAUTH_INVALID_RESPONSE');
    callback.searchParams.delete('iss');
    expect(await refusal()).to.equal('OAUTH_INVALID_RESPONSE');
  });

  for (const mode of [undefined, 'jwt']) {
    it(`log in with oauth4webapi, PAR and JAR, response mode ${mode ?? 'by default'}`, async () => {
      const asked = { ...parameters, ...(mode !== undefined && { response_mode: mode }) };
      const { url, verifier } = await sdk.call('oauth-request', { ...client(), key, parameters: asked });
      const callback = await browse(url);
      const args = { ...client(), callback, verifier, state: 'the-state', redirectUri: WEB_CALLBACK };
      const tokens = await sdk.call('oauth-response', args);
      expect(tokens).to.include.keys('access_token', 'id_token');
    });
  }

  it('log in with auth0-auth-js and pushedAuthorizationRequests', async () => {
    const options = { domain: new URL(server.url).host, clientId: 'web', clientSecret: 'web-secret' };
    const { authorizationUrl, codeVerifier } = await sdk.call('auth-js', {
      options,
      method: 'buildAuthorizationUrl',
      args: [
        {
          pushedAuthorizationRequests: true,
          authorizationParams: { redirect_uri: WEB_CALLBACK, scope: 'openid email', audience: API },
        },
      ],
    });
    expect([...new URL(authorizationUrl).searchParams.keys()]).to.have.members(['client_id', 'request_uri']);
    const callback = await browse(authorizationUrl);
    const tokens = await sdk.call('auth-js-code', { options, callback, codeVerifier });
    expect(tokens.claims.email).to.equal('ada@example.test');
  });

  for (const version of [4, 5]) {
    it(`log in with node-auth0 ${version}: oauth.pushedAuthorization`, async () => {
      const options = { domain: new URL(server.url).host, clientId: 'web', clientSecret: 'web-secret' };
      const pushed = await sdk.call('node-pushed', {
        version,
        options,
        parameters: { client_id: 'web', ...parameters },
      });
      expect(pushed.expires_in).to.equal(30);
      const query = new URLSearchParams({ client_id: 'web', request_uri: pushed.request_uri });
      const callback = new URL(await browse(`${server.url}/authorize?${query}`));
      expect(callback.searchParams.get('state')).to.equal('the-state');
      expect(callback.searchParams.has('code')).to.equal(true);
    });
  }
});
