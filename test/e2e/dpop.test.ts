// DPoP (RFC 9449) with published clients, unmodified: auth0-spa-js in a browser, openid-client and oauth4webapi.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { expect } from 'chai';
import * as oauth from 'oauth4webapi';
import * as oidc from 'openid-client';
import { createAgent } from '../support/agent.ts';
import { openApplication } from '../support/application.ts';
import { API, follow, payload, submitLogin, tenant, USER, WEB_CALLBACK } from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';

function spaSdk(): Buffer {
  const manifest = createRequire(import.meta.url).resolve('@auth0/auth0-spa-js/package.json');
  return readFileSync(join(dirname(manifest), 'dist/auth0-spa-js.production.js'));
}

const boundTenant = (flags: Record<string, boolean>, origin?: string) => ({
  ...tenant,
  tenant: { ...tenant.tenant, flags },
  clients: tenant.clients.map((client) =>
    client.client_id === 'spa' && origin !== undefined
      ? { ...client, callbacks: [origin], web_origins: [origin] }
      : client,
  ),
  resourceServers: tenant.resourceServers.map((api) =>
    api.identifier === API ? { ...api, proof_of_possession: { mechanism: 'dpop', required: true } } : api,
  ),
});

for (const require_dpop_nonce of [false, true]) {
  describe(`@auth0/auth0-spa-js with useDpop, ${require_dpop_nonce ? 'with' : 'without'} nonces of the server`, () => {
    const at = openApplication({
      script: spaSdk,
      tenant: (origin) => boundTenant({ require_dpop_nonce }, origin),
    });
    const createClient = async (options: Record<string, unknown> = {}) => {
      const { page, server, origin } = at();
      await page.evaluate(
        async ([domain, redirect_uri, audience, more]) => {
          const sdk = (globalThis as any).auth0;
          (globalThis as any).client = await sdk.createAuth0Client({
            domain,
            clientId: 'spa',
            useDpop: true,
            authorizationParams: { redirect_uri, audience, scope: 'openid profile email read:things' },
            ...(more as object),
          });
        },
        [new URL(server.url).host, origin, API, options] as const,
      );
    };
    const logIn = async (options: Record<string, unknown> = {}) => {
      const { page, origin } = at();
      await createClient(options);
      await Promise.all([
        page.waitForURL(/\/u\//),
        page.evaluate(() => (globalThis as any).client.loginWithRedirect()),
      ]);
      await page.getByLabel('Email address').fill(USER.email);
      await page.getByLabel('Password', { exact: true }).fill(USER.password);
      await page.getByRole('button', { name: 'Continue' }).click();
      await page.waitForURL((url) => url.origin === origin);
      await createClient(options);
      await page.evaluate(() => (globalThis as any).client.handleRedirectCallback());
    };
    const silently = () =>
      at().page.evaluate(() =>
        (globalThis as any).client.getTokenSilently({ cacheMode: 'off', detailedResponse: true }),
      );

    it('logs in, and calls an API with its fetcher', async () => {
      await logIn();
      const { page, server } = at();
      const profile = await page.evaluate(
        async ([url]) => {
          const fetcher = (globalThis as any).client.createFetcher({ dpopNonceId: 'profile' });
          const response = await fetcher.fetchWithAuth(`${url}/userinfo`);
          return { status: response.status, body: await response.json() };
        },
        [server.url] as const,
      );
      expect(profile.status).to.equal(200);
      expect(profile.body).to.include({ email: USER.email });
    });

    const REFRESHING = { useRefreshTokens: true, cacheLocation: 'localstorage' };
    for (const [way, options] of Object.entries({ 'in an iframe': {}, 'by a refresh token': REFRESHING })) {
      it(`renews tokens silently ${way}, bound to its key`, async () => {
        await logIn(options);
        const { access_token } = (await silently()) as { access_token: string };
        expect(payload(access_token).cnf).to.have.property('jkt');
      });
    }
  });
}

describe('openid-client and oauth4webapi', () => {
  let server: TestServer;
  before(async () => {
    server = await startServer({ tenant: boundTenant({ require_dpop_nonce: true }) });
    setDefaultCACertificates([...getCACertificates('default'), server.ca]);
  });
  after(() => server.stop());

  it('openid-client logs in with a pushed request and DPoP, reads the profile, and refreshes', async () => {
    const config = await oidc.discovery(new URL(server.issuer), 'web', 'web-secret');
    const DPoP = oidc.getDPoPHandle(config, await oidc.randomDPoPKeyPair());
    const verifier = oidc.randomPKCECodeVerifier();
    const url = await oidc.buildAuthorizationUrlWithPAR(
      config,
      {
        redirect_uri: WEB_CALLBACK,
        scope: 'openid profile email offline_access',
        audience: API,
        code_challenge: await oidc.calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
      },
      { DPoP },
    );
    const browser = createAgent(server);
    const page = await follow(browser, await browser.get(url.href), server.url);
    const callback = new URL((await submitLogin(browser, server, page)).location);
    const checks = { pkceCodeVerifier: verifier, idTokenExpected: true };
    const tokens = await oidc.authorizationCodeGrant(config, callback, checks, undefined, { DPoP });
    expect(tokens.token_type).to.equal('dpop');
    expect(payload(tokens.access_token).cnf).to.have.property('jkt');
    const { sub = '' } = tokens.claims() ?? {};
    const profile = await oidc.fetchUserInfo(config, tokens.access_token, sub, { DPoP });
    expect(profile).to.include({ email: USER.email });
    const refreshed = await oidc.refreshTokenGrant(config, tokens.refresh_token ?? '', {}, { DPoP });
    expect(refreshed.token_type).to.equal('dpop');
  });

  it('openid-client cannot exchange a code whose request was pushed with another key', async () => {
    const config = await oidc.discovery(new URL(server.issuer), 'web', 'web-secret');
    const [DPoP, other] = await Promise.all([oidc.randomDPoPKeyPair(), oidc.randomDPoPKeyPair()]);
    const verifier = oidc.randomPKCECodeVerifier();
    const url = await oidc.buildAuthorizationUrlWithPAR(
      config,
      {
        redirect_uri: WEB_CALLBACK,
        scope: 'openid',
        code_challenge: await oidc.calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
      },
      { DPoP: oidc.getDPoPHandle(config, DPoP) },
    );
    const browser = createAgent(server);
    const page = await follow(browser, await browser.get(url.href), server.url);
    const callback = new URL((await submitLogin(browser, server, page)).location);
    const stolen = await oidc
      .authorizationCodeGrant(config, callback, { pkceCodeVerifier: verifier }, undefined, {
        DPoP: oidc.getDPoPHandle(config, other),
      })
      .then(
        () => undefined,
        (thrown: unknown) => thrown as oidc.ResponseBodyError,
      );
    expect(stolen?.error).to.equal('invalid_dpop_proof');
  });

  it('oauth4webapi gets a token by client credentials with DPoP, after the nonce that is required', async () => {
    const issuer = new URL(server.issuer);
    const as = await oauth.processDiscoveryResponse(issuer, await oauth.discoveryRequest(issuer));
    const client: oauth.Client = { client_id: 'm2m' };
    const DPoP = oauth.DPoP(client, await oauth.generateKeyPair('ES256'));
    const secret = oauth.ClientSecretPost('m2m-secret');
    const ask = () => oauth.clientCredentialsGrantRequest(as, client, secret, { audience: API }, { DPoP });
    const process = async () => oauth.processClientCredentialsResponse(as, client, await ask());
    const tokens = await process().catch((thrown: unknown) => {
      if (!oauth.isDPoPNonceError(thrown)) throw thrown;
      return process();
    });
    expect(tokens.token_type).to.equal('dpop');
    // A resource server of ours accepts it with the same DPoP handle.
    const call = () =>
      oauth.protectedResourceRequest(
        tokens.access_token,
        'GET',
        new URL(`${server.url}/userinfo`),
        undefined,
        null,
        {
          DPoP,
        },
      );
    const refused = await call().then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    // The token has no user; the error shows that the scheme was accepted.
    expect(refused).to.be.instanceOf(oauth.WWWAuthenticateChallengeError);
  });
});
