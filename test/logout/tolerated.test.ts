// Logouts that are neither refused nor taken at their word: an ID token whose key is gone, a prefetch, and the free port of a
// native application.
import { expect } from 'chai';
import { callsWith, managementToken, startManaged } from '../management/support.ts';
import { createAgent } from '../support/agent.ts';
import type { TestServer } from '../support/server.ts';
import { HTML, isLoggedIn, logInAtTwo, logoutTenant, moreTokens, SPA_HOME, TENANT_HOME } from './support.ts';

const ACCEPT = { accept: HTML };

describe('a logout', () => {
  let server: TestServer;
  before(async () => {
    const base = logoutTenant({
      'code-only': {
        app_type: 'native',
        allowed_logout_urls: ['http://127.0.0.1/bye', 'http://[::1]:8000/bye', 'http://localhost/bye'],
      },
    });
    server = await startManaged(base);
  });
  after(() => server.stop());

  const loggedIn = async () => {
    const browser = createAgent(server);
    await logInAtTwo(browser, server);
    return browser;
  };
  const ask = (browser: Awaited<ReturnType<typeof loggedIn>>, fields: Record<string, string>) =>
    browser.get(`/oidc/logout?${new URLSearchParams(fields)}`, ACCEPT);

  it('with an ID token two key rotations old asks the user, for the URLs of its application', async () => {
    const browser = await loggedIn();
    const { id_token: old } = await moreTokens(browser);
    let call = callsWith(server, await managementToken(server));
    for (let n = 0; n < 3; n++) {
      call = callsWith(server, await managementToken(server));
      const rotated = await call('POST', '/keys/signing/rotate');
      expect(rotated.status, rotated.text).to.equal(201);
      server.tick(120_000);
    }
    call = callsWith(server, await managementToken(server));
    const revoked = (await call('GET', '/keys/signing')).json() as { kid: string; current?: boolean }[];
    const { kid } = JSON.parse(Buffer.from(old.split('.')[0] ?? '', 'base64url').toString());
    expect(revoked.filter((key) => key.kid === kid && key.current === true)).to.deep.equal([]);
    const jwks = (await browser.get('/.well-known/jwks.json')).json();
    expect(jwks.keys.map((key: { kid: string }) => key.kid)).not.to.include(kid);
    const asked = await ask(browser, { id_token_hint: old, post_logout_redirect_uri: SPA_HOME });
    expect(asked.status, asked.text.slice(0, 300)).to.equal(200);
    expect(asked.text).to.contain('name="decision"');
    expect(await isLoggedIn(browser)).to.equal(true);
    for (const [what, fields] of [
      ['a URL of another application', { post_logout_redirect_uri: 'https://web.example.test/signed-out' }],
      ['another client_id', { client_id: 'web' }],
    ] as const)
      expect((await ask(browser, { id_token_hint: old, ...fields })).status, what).to.equal(400);
    const own = await moreTokens(browser);
    const done = await ask(browser, { id_token_hint: own.id_token, post_logout_redirect_uri: TENANT_HOME });
    expect(done.location).to.equal(TENANT_HOME);
  });

  for (const [name, value] of [
    ['Sec-Purpose', 'prefetch'],
    ['Sec-Purpose', 'prefetch;prerender'],
    ['Purpose', 'prefetch'],
  ] as const)
    it(`is not done by a prefetch of its link: ${name}: ${value}`, async () => {
      const browser = await loggedIn();
      for (const path of ['/v2/logout', '/oidc/logout']) {
        const answer = await browser.get(path, { ...ACCEPT, [name]: value });
        expect(answer.status).to.equal(503);
        expect(answer.headers['cache-control']).to.equal('no-store');
      }
      expect(await isLoggedIn(browser)).to.equal(true);
      // What changes nothing may be loaded ahead.
      expect((await browser.get('/.well-known/openid-configuration', { [name]: value })).status).to.equal(
        200,
      );
      expect((await browser.get('/v2/logout', ACCEPT)).status).to.be.oneOf([200, 302]);
      expect(await isLoggedIn(browser)).to.equal(false);
    });

  it('of a native application leads to any port of a loopback address', async () => {
    for (const [address, isAllowed] of [
      ['http://127.0.0.1:51008/bye', true],
      ['http://[::1]:51008/bye', true],
      ['http://127.0.0.1:51008/other', false],
      ['http://localhost:51008/bye', false],
      ['https://127.0.0.1:51008/bye', false],
    ] as const)
      for (const path of [
        `/v2/logout?${new URLSearchParams({ client_id: 'code-only', returnTo: address })}`,
        `/oidc/logout?${new URLSearchParams({ client_id: 'code-only', post_logout_redirect_uri: address })}`,
      ]) {
        const answer = await createAgent(server).get(path, ACCEPT);
        expect([answer.status === 400, answer.location], path).to.deep.equal([
          !isAllowed,
          isAllowed ? address : '',
        ]);
      }
    const other = new URLSearchParams({ client_id: 'spa', returnTo: 'http://127.0.0.1:51008/bye' });
    expect((await createAgent(server).get(`/v2/logout?${other}`, ACCEPT)).status).to.equal(400);
  });
});
