// Logout with published SDKs, unmodified, against a running server with its own TLS.
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { HTML, isLoggedIn, logInAtTwo, logoutTenant, moreTokens, WEB_HOME } from '../logout/support.ts';
import { type Agent, createAgent } from '../support/agent.ts';
import { payload, responseOf, webRequest } from '../support/flows.ts';
import { type SdkProcess, startSdkProcess } from '../support/sdk.ts';
import { startServer, type TestServer } from '../support/server.ts';

describe('logout with published SDKs', () => {
  let server: TestServer;
  let sdk: SdkProcess;
  let browser: Agent;
  let application: http.Server;
  const posted: URLSearchParams[] = [];

  before(async () => {
    application = http.createServer((request, response) => {
      let body = '';
      request.on('data', (chunk: Buffer) => {
        body += chunk;
      });
      request.on('end', () => {
        posted.push(new URLSearchParams(body));
        response.end();
      });
    });
    await new Promise<void>((resolve) => application.listen(0, '127.0.0.1', resolve));
    const address = `http://localhost:${(application.address() as AddressInfo).port}/backchannel`;
    const web = { oidc_conformant: true, oidc_logout: { backchannel_logout_urls: [address] } };
    server = await startServer({ tenant: logoutTenant({ web }) });
    sdk = await startSdkProcess(server.caFile);
  });
  after(async () => {
    await sdk?.stop();
    await server?.stop();
    application?.close();
  });
  beforeEach(async () => {
    browser = createAgent(server);
    await logInAtTwo(browser, server);
  });

  const options = () => ({
    domain: new URL(server.url).host,
    clientId: 'web',
    clientSecret: 'web-secret',
  });
  const webIdToken = async () => {
    const request = webRequest({ response_type: 'id_token', nonce: 'n', prompt: 'none' });
    return responseOf(await browser.get(`/authorize?${new URLSearchParams(request)}`)).id_token ?? '';
  };

  it('@auth0/auth0-auth-js: buildLogoutUrl uses the endpoint of discovery, and the browser returns', async () => {
    const url = await sdk.call('auth-js', {
      options: options(),
      method: 'buildLogoutUrl',
      args: [{ returnTo: WEB_HOME }],
    });
    expect(new URL(url).pathname).to.equal('/oidc/logout');
    const page = await browser.request(url, { headers: { accept: HTML } });
    expect(page.text).to.contain('Do you want to log out?');
  });

  it('@auth0/auth0-auth-js: verifyLogoutToken accepts our back-channel logout tokens', async () => {
    const { sid, sub } = payload((await moreTokens(browser)).id_token);
    posted.length = 0;
    await browser.get('/v2/logout?client_id=web');
    await server.tenant.close();
    const logoutToken = posted[0]?.get('logout_token');
    const verified = await sdk.call('auth-js', {
      options: options(),
      method: 'verifyLogoutToken',
      args: [{ logoutToken }],
    });
    expect(verified).to.deep.equal({ sid, sub });
  });

  it('openid-client: buildEndSessionUrl with an id_token_hint logs out without confirmation', async () => {
    const url = await sdk.call('oidc-end-session-url', {
      issuer: server.issuer,
      clientId: 'web',
      secret: 'web-secret',
      parameters: { post_logout_redirect_uri: WEB_HOME, id_token_hint: await webIdToken(), state: 's' },
    });
    expect((await browser.get(url)).location).to.equal(`${WEB_HOME}?state=s`);
    expect(await isLoggedIn(browser)).to.equal(false);
  });
});
