import { expect } from 'chai';
import { importJWK, type JWTPayload, SignJWT } from 'jose';
import { type Agent, type Answer, createAgent, readForm } from '../support/agent.ts';
import { header, logIn, payload, responseOf, token, USER, webRequest } from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';
import {
  events,
  HTML,
  isLoggedIn,
  logInAtTwo,
  logoutTenant,
  moreTokens,
  SPA_HOME,
  TENANT_HOME,
  WEB_HOME,
} from './support.ts';

type Parameters = Record<string, string>;

for (const method of ['GET', 'POST'] as const) {
  describe(`${method} /oidc/logout`, () => {
    let server: TestServer;
    let browser: Agent;
    /** An ID token of the SPA, which is OIDC-conformant, and one of the web application, which is not. */
    let spaToken: string;
    let webToken: string;
    let sid: string;

    before(async () => {
      const second = { email: 'bob@example.test', password: USER.password, connection: 'users' };
      const base = logoutTenant({}, { enabled_locales: ['en', 'de'] });
      server = await startServer({ tenant: { ...base, users: [...base.users, second] } });
    });
    after(() => server.stop());
    beforeEach(async () => {
      browser = createAgent(server);
      await logInAtTwo(browser, server);
      spaToken = (await moreTokens(browser)).id_token;
      webToken = responseOf(
        await browser.get(
          `/authorize?${new URLSearchParams(
            webRequest({ response_type: 'id_token', nonce: 'n', prompt: 'none' }),
          )}`,
        ),
      ).id_token!;
      sid = payload(spaToken).sid;
    });

    const ask = (params: Parameters, agent = browser): Promise<Answer> =>
      method === 'GET'
        ? agent.get(`/oidc/logout?${new URLSearchParams(params)}`, { accept: HTML })
        : agent.request('/oidc/logout', { form: params, headers: { accept: HTML } });

    const goes = async (params: Parameters, to: string, agent = browser) => {
      const answer = await ask(params, agent);
      expect({ status: answer.status, to: answer.headers.location }).to.deep.equal({ status: 302, to });
      expect(await isLoggedIn(agent)).to.equal(false);
    };

    const asks = async (params: Parameters) => {
      const answer = await ask(params);
      expect(answer.status).to.equal(200);
      expect(readForm(answer, '_csrf').action).to.equal('/oidc/logout/consent');
      expect(await isLoggedIn(browser)).to.equal(true);
      return answer;
    };

    const refuses = async (params: Parameters, why: string) => {
      const answer = await ask(params);
      expect(answer.status).to.equal(400);
      expect(answer.headers.location).to.equal(undefined);
      expect(answer.text).to.contain('invalid_request').and.to.contain(why);
      expect(await isLoggedIn(browser)).to.equal(true);
    };

    describe('with an id_token_hint', () => {
      it('of this session ends it without asking', () =>
        goes({ id_token_hint: webToken, post_logout_redirect_uri: TENANT_HOME }, TENANT_HOME));

      it('that has expired ends its session without asking', async () => {
        server.tick(20 * 3600_000);
        expect(payload(webToken).exp).to.be.below(Date.now() / 1000);
        await goes({ id_token_hint: webToken, post_logout_redirect_uri: TENANT_HOME }, TENANT_HOME);
      });

      it("and client_id uses the application's allow-list", async () => {
        await refuses(
          { id_token_hint: webToken, client_id: 'web', post_logout_redirect_uri: TENANT_HOME },
          'post_logout_redirect_uri',
        );
        await goes(
          { id_token_hint: webToken, client_id: 'web', post_logout_redirect_uri: WEB_HOME },
          WEB_HOME,
        );
      });

      it('without client_id uses the allow-lists of the tenant and of its own application', async () => {
        const goesOnce = async (id_token_hint: string, post_logout_redirect_uri: string) => {
          await goes({ id_token_hint, post_logout_redirect_uri }, post_logout_redirect_uri);
        };
        await goesOnce(webToken, TENANT_HOME);
        // OIDC-conformant or not, libraries name the application only by the hint.
        for (const [hint, home] of [
          [webToken, WEB_HOME],
          [spaToken, SPA_HOME],
        ] as const) {
          await goesOnce(hint, home);
        }
      });

      it("without client_id does not use another application's allow-list", async () => {
        await refuses({ id_token_hint: webToken, post_logout_redirect_uri: SPA_HOME }, 'not defined');
        await refuses({ id_token_hint: spaToken, post_logout_redirect_uri: WEB_HOME }, 'not defined');
        const elsewhere = 'https://evil.example/';
        await refuses({ id_token_hint: webToken, post_logout_redirect_uri: elsewhere }, 'not defined');
      });

      it('and client_id without a redirect URI goes to the first URL of the list', () =>
        goes({ id_token_hint: webToken, client_id: 'web' }, WEB_HOME));

      it('alone ends at our own page', async () => {
        const answer = await ask({ id_token_hint: webToken });
        expect(answer.status).to.equal(200);
        expect(answer.text).to.contain('You are logged out');
        expect(await isLoggedIn(browser)).to.equal(false);
      });

      it('and another client_id than its aud is refused', () =>
        refuses({ id_token_hint: webToken, client_id: 'spa' }, 'client_id does not match'));

      it('and another logout_hint than its sid is refused', () =>
        refuses({ id_token_hint: webToken, logout_hint: 'another' }, 'logout_hint does not match'));

      it('and its sid as logout_hint ends the session', () =>
        goes(
          { id_token_hint: webToken, logout_hint: sid, post_logout_redirect_uri: TENANT_HOME },
          TENANT_HOME,
        ));

      it('of another session of the user asks first', async () => {
        const other = createAgent(server);
        await logInAtTwo(other, server);
        await asks({ id_token_hint: (await moreTokens(other)).id_token });
      });

      it('of another user asks first', async () => {
        const other = createAgent(server);
        await logIn(other, server, webRequest(), { email: 'bob@example.test', password: USER.password });
        await asks({ id_token_hint: (await moreTokens(other)).id_token });
      });

      it('of an application with HS256 is checked by its secret', async () => {
        const { id_token } = (await passwordTokens('hs256', 'a-secret-of-at-least-32-characters!')).json();
        expect(header(id_token)).to.include({ alg: 'HS256' });
        await refuses({ id_token_hint: `${id_token.slice(0, -3)}AAA` }, 'id_token_hint');
        // Issued without a session: the same user suffices.
        await goes({ id_token_hint: id_token, post_logout_redirect_uri: TENANT_HOME }, TENANT_HOME);
      });

      it('that is invalid is refused', async () => {
        const [head = '', body = '', signature = ''] = webToken.split('.');
        const forge = (claims: object) =>
          Buffer.from(JSON.stringify({ ...payload(webToken), ...claims })).toString('base64url');
        const none = Buffer.from('{"alg":"none"}').toString('base64url');
        const hs256 = Buffer.from(JSON.stringify({ ...header(webToken), alg: 'HS256' })).toString(
          'base64url',
        );
        const tokens = [
          'nonsense',
          'a.b.c',
          `${head}.${forge({ sub: 'auth0|other' })}.${signature}`,
          `${head}.${body}.`,
          `${none}.${body}.`,
          `${hs256}.${body}.${signature}`,
          (await moreTokens(browser, { audience: 'https://api.example.test/' })).access_token,
        ];
        for (const hint of tokens) await refuses({ id_token_hint: hint }, 'id_token_hint');
      });

      it('that is a token of ours for another issuer or of another type is refused', async () => {
        const claims = payload(webToken);
        const sign = (over: JWTPayload, typ?: string) => signedByUs(server, { ...claims, ...over }, typ);
        const refused = [
          await sign({ iss: 'https://other.example/' }),
          await sign({ aud: 'nobody' }),
          await sign({ aud: { client: 'web' } as never }),
          await sign({ aud: 5 as never }),
          await sign({ aud: [['web']] as never }),
          await sign({ aud: ['web', 'spa'] }),
          await sign({ events: { 'http://schemas.openid.net/event/backchannel-logout': {} } }),
          await sign({}, 'logout+jwt'),
          await sign({}, 'at+jwt'),
        ];
        for (const hint of refused) await refuses({ id_token_hint: hint }, 'id_token_hint');
        await goes(
          { id_token_hint: await sign({}, 'JWT'), post_logout_redirect_uri: TENANT_HOME },
          TENANT_HOME,
        );
      });
    });

    describe('without an id_token_hint', () => {
      it('asks the user first', async () => {
        await asks({});
        await asks({ client_id: 'web', post_logout_redirect_uri: WEB_HOME });
        await asks({ logout_hint: 'another' });
      });

      it("ends the session unasked when the logout_hint is the session's id", () =>
        goes({ logout_hint: sid, client_id: 'web', post_logout_redirect_uri: WEB_HOME }, WEB_HOME));

      it("uses the application's allow-list with client_id, and the tenant's without", async () => {
        await refuses(
          { logout_hint: sid, client_id: 'web', post_logout_redirect_uri: TENANT_HOME },
          'post_logout_redirect_uri',
        );
        await refuses({ logout_hint: sid, post_logout_redirect_uri: WEB_HOME }, 'post_logout_redirect_uri');
        await goes({ logout_hint: sid, post_logout_redirect_uri: TENANT_HOME }, TENANT_HOME);
      });

      it('goes to the first allowed URL with client_id and no redirect URI', () =>
        goes({ logout_hint: sid, client_id: 'web' }, WEB_HOME));

      it('refuses an unknown client_id', () => refuses({ client_id: 'nobody' }, 'Unknown client'));
    });

    describe('post_logout_redirect_uri', () => {
      it('gets the state of the request', () =>
        goes(
          { logout_hint: sid, post_logout_redirect_uri: TENANT_HOME, state: 'a b&c=d#e' },
          `${TENANT_HOME}?state=a+b%26c%3Dd%23e`,
        ));

      it('keeps its own query beside the state', () =>
        goes(
          {
            logout_hint: sid,
            client_id: 'spa',
            post_logout_redirect_uri: `${SPA_HOME}/out?from=spa`,
            state: 's',
          },
          `${SPA_HOME}/out?from=spa&state=s`,
        ));

      it('gets no state when the request has none', () =>
        goes({ logout_hint: sid, client_id: 'web', state: 's' }, WEB_HOME));

      it('is matched with its query', () =>
        refuses(
          { logout_hint: sid, client_id: 'spa', post_logout_redirect_uri: `${SPA_HOME}/out?from=other` },
          'post_logout_redirect_uri',
        ));
    });

    describe('without a session', () => {
      it('redirects all the same', async () => {
        const params = { client_id: 'web', post_logout_redirect_uri: WEB_HOME, state: 's' };
        await goes(params, `${WEB_HOME}?state=s`, createAgent(server));
      });
    });

    describe('ui_locales', () => {
      it('whose first is enabled sets the language of the question', async () => {
        expect((await ask({ ui_locales: 'de en' })).text).to.contain('Möchten Sie sich abmelden?');
        expect((await ask({ ui_locales: 'de-AT' })).text).to.contain('Möchten Sie sich abmelden?');
        expect((await ask({ ui_locales: 'DE' })).text).to.contain('Möchten Sie sich abmelden?');
      });

      it('whose first is not enabled is refused, whatever comes after', async () => {
        await refuses({ ui_locales: 'fr de' }, 'ui_locales');
        await refuses({ ui_locales: 'ar', logout_hint: sid }, 'ui_locales');
        await refuses({ ui_locales: 'd' }, 'ui_locales');
      });
    });

    it(`federated ${method === 'GET' ? 'is a flag' : 'is true or false'}`, async () => {
      if (method === 'GET') {
        await goes({ logout_hint: sid, federated: '', post_logout_redirect_uri: TENANT_HOME }, TENANT_HOME);
      } else {
        await refuses({ logout_hint: sid, federated: '' }, 'federated');
        await refuses({ logout_hint: sid, federated: 'yes' }, 'federated');
        await goes(
          { logout_hint: sid, federated: 'false', post_logout_redirect_uri: TENANT_HOME },
          TENANT_HOME,
        );
      }
    });

    it('refuses a parameter that is given twice', async () => {
      const twice: [string, string][] = [
        ['logout_hint', sid],
        ['logout_hint', 'other'],
      ];
      const answer =
        method === 'GET'
          ? await browser.get(`/oidc/logout?${new URLSearchParams(twice)}`)
          : await browser.request('/oidc/logout', { form: twice });
      expect(answer.status).to.equal(400);
      expect(await isLoggedIn(browser)).to.equal(true);
    });

    describe('the consent page', () => {
      const decide = async (
        page: Answer,
        decision: string,
        over: Parameters = {},
        headers: Parameters = {},
      ) => {
        const { action, fields } = readForm(page, '_csrf');
        return browser.request(action, {
          form: { ...fields, ...over, decision },
          headers: { accept: HTML, ...headers },
        });
      };

      it('names the user and the application', async () => {
        const page = await asks({ client_id: 'web' });
        expect(page.text).to.contain(USER.email).and.to.contain('Web app');
      });

      it('ends the session and redirects with the state when confirmed', async () => {
        const page = await asks({ client_id: 'web', post_logout_redirect_uri: WEB_HOME, state: 's' });
        const answer = await decide(page, 'logout');
        expect(answer).to.include({ status: 302, location: `${WEB_HOME}?state=s` });
        expect(await isLoggedIn(browser)).to.equal(false);
      });

      it('keeps the session when cancelled', async () => {
        const page = await asks({ client_id: 'web', post_logout_redirect_uri: WEB_HOME, ui_locales: 'de' });
        const answer = await decide(page, 'stay');
        expect(answer.status).to.equal(200);
        expect(answer.text).to.contain('Sie sind weiterhin angemeldet');
        expect(await isLoggedIn(browser)).to.equal(true);
      });

      it('requires its CSRF token', async () => {
        const page = await asks({});
        const forged = await decide(page, 'logout', { _csrf: 'forged' });
        const foreign = await decide(page, 'logout', {}, { origin: 'https://evil.example' });
        expect([forged.status, foreign.status]).to.deep.equal([403, 403]);
        expect(await isLoggedIn(browser)).to.equal(true);
      });

      it('validates the returned request again', async () => {
        const page = await asks({ client_id: 'web', post_logout_redirect_uri: WEB_HOME });
        const answer = await decide(page, 'logout', { post_logout_redirect_uri: 'https://evil.example' });
        expect(answer.status).to.equal(400);
        expect(await isLoggedIn(browser)).to.equal(true);
      });

      it('is shown again for another session', async () => {
        const page = await asks({});
        const answer = await decide(page, 'logout', { session: 'another' });
        expect(answer.text).to.contain('Do you want to log out?');
        expect(await isLoggedIn(browser)).to.equal(true);
      });

      it('redirects when the session has ended before the answer', async () => {
        const page = await asks({ client_id: 'web', post_logout_redirect_uri: WEB_HOME });
        await browser.get('/v2/logout');
        expect((await decide(page, 'logout')).location).to.equal(WEB_HOME);
      });
    });

    it('logs logouts and refusals', async () => {
      // The limit for events of refusals has room again.
      server.tick(10 * 60_000);
      await ask({ logout_hint: 'x', id_token_hint: webToken });
      await ask({ logout_hint: sid });
      await server.tenant.close();
      expect((await events(server)).slice(-2)).to.have.members(['flo', 'slo']);
    });

    const passwordTokens = (client_id: string, client_secret: string) =>
      token(createAgent(server), {
        grant_type: 'password',
        client_id,
        client_secret,
        username: USER.email,
        password: USER.password,
        scope: 'openid',
      });
  });
}

describe('discovery of logout', () => {
  const metadata = async (server: TestServer) =>
    (await createAgent(server).get('/.well-known/openid-configuration')).json();

  it('announces the endpoint and both channels', async () => {
    const server = await startServer({ tenant: logoutTenant() });
    expect(await metadata(server)).to.include({
      end_session_endpoint: `${server.url}/oidc/logout`,
      backchannel_logout_supported: true,
      backchannel_logout_session_supported: true,
      frontchannel_logout_supported: true,
      frontchannel_logout_session_supported: true,
    });
    await server.stop();
  });

  it('omits the endpoint when the tenant switches it off', async () => {
    const oidc_logout = { rp_logout_end_session_endpoint_discovery: false };
    const server = await startServer({ tenant: logoutTenant({}, { oidc_logout }) });
    expect(await metadata(server)).not.to.have.property('end_session_endpoint');
    await server.stop();
  });
});

/** Returns a JWT signed with the tenant's current key. */
async function signedByUs(server: TestServer, claims: JWTPayload, typ?: string): Promise<string> {
  const [key] = await server.store.collection('signingKeys').findBy('state', 'current');
  if (key === undefined) throw new Error('no key');
  const protectedHeader = { alg: 'RS256', kid: key.id, ...(typ === undefined ? {} : { typ }) };
  return new SignJWT(claims)
    .setProtectedHeader(protectedHeader)
    .sign(await importJWK({ ...key.jwk }, 'RS256'));
}
