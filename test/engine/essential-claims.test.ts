// Essential claims (OpenID Connect Core §5.5.1), in every form of request.
import { expect } from 'chai';
import { SignJWT } from 'jose';
import { createAgent } from '../support/agent.ts';
import { clientKey } from '../support/client-key.ts';
import { authorize, logIn, payload, responseOf, token, WEB_CALLBACK, webRequest } from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { tenantWith } from '../support/tenant.ts';

const MFA = 'http://schemas.openid.net/pape/policies/2007/06/multi-factor';
const key = await clientKey('PS256');

describe('essential claims', () => {
  let server: TestServer;
  before(async () => {
    server = await startServer({
      tenant: tenantWith({ change: { web: { signed_request_object: { credentials: [key.credential] } } } }),
    });
  });
  after(() => server.stop());

  const agent = () => createAgent(server);
  const acr = (wanted: object) => ({ id_token: { acr: wanted } });
  const asking = (claims: object, over: Record<string, string> = {}) =>
    webRequest({ claims: JSON.stringify(claims), ...over });
  const UNMET = 'unmet_authentication_requirements';

  const unreachable: [string, object][] = [
    ['value', { essential: true, value: 'urn:gold' }],
    ['values', { essential: true, values: ['urn:gold', 'urn:silver'] }],
    ['empty list', { essential: true, values: [] }],
  ];
  for (const [what, wanted] of unreachable) {
    it(`refuse a request with an unknown acr (${what}) at once, with and without a session`, async () => {
      const browser = agent();
      expect(responseOf(await authorize(browser, asking(acr(wanted))))).to.include({
        error: UNMET,
        state: 'the-state',
      });
      await logIn(browser, server, webRequest());
      expect(responseOf(await authorize(browser, asking(acr(wanted)))).error).to.equal(UNMET);
      expect(responseOf(await authorize(browser, asking(acr(wanted), { prompt: 'none' }))).error).to.equal(
        UNMET,
      );
    });
  }

  it('end in an error when the login does not reach the acr, without asking for another login', async () => {
    // No second factor is set up in this tenant.
    const browser = agent();
    for (const wanted of [
      { essential: true, value: MFA },
      { essential: true, values: ['urn:gold', MFA] },
    ]) {
      const answer = await logIn(browser, server, asking(acr(wanted), { prompt: 'login' }));
      expect(responseOf(answer).error).to.equal(UNMET);
      const silent = await authorize(browser, asking(acr(wanted), { prompt: 'none' }));
      expect(responseOf(silent).error).to.equal('login_required');
    }
  });

  it('are checked in pushed requests and request objects, too', async () => {
    const claims = acr({ essential: true, value: 'urn:gold' });
    const secret = { client_id: 'web', client_secret: 'web-secret' };
    const pushed = await agent().request('/oauth/par', { form: { ...asking(claims), ...secret } });
    expect(pushed.json().error).to.equal(UNMET);
    const request = await new SignJWT({ ...webRequest(), claims, iss: 'web', aud: server.issuer })
      .setProtectedHeader({ alg: 'PS256' })
      .sign(key.privateKey);
    expect(responseOf(await authorize(agent(), { client_id: 'web', request })).error).to.equal(UNMET);
  });

  it('allow a login that does not reach an acr which is not essential', async () => {
    for (const over of [
      { acr_values: 'urn:gold' },
      { claims: JSON.stringify(acr({ value: 'urn:gold' })) },
      { claims: JSON.stringify({ id_token: { acr: null } }) },
      { claims: JSON.stringify({ id_token: { acr: { essential: true } } }) },
      { claims: JSON.stringify({ userinfo: { acr: { essential: true, value: 'urn:gold' } } }) },
    ]) {
      expect(responseOf(await logIn(agent(), server, webRequest(over)))).to.have.property('code');
    }
  });

  it('are refused when malformed', async () => {
    for (const claims of [
      { id_token: { acr: 'gold' } },
      { id_token: { acr: ['gold'] } },
      { id_token: { acr: { essential: true, values: 'gold' } } },
      { userinfo: { email: true } },
    ]) {
      expect(responseOf(await authorize(agent(), asking(claims))).error, JSON.stringify(claims)).to.equal(
        'invalid_request',
      );
    }
  });

  it('put auth_time into the ID token when it is essential or the request has a max_age', async () => {
    for (const over of [
      { claims: JSON.stringify({ id_token: { auth_time: { essential: true } } }) },
      { max_age: '600' },
      { max_age: '0' },
    ]) {
      const browser = agent();
      const { code } = responseOf(await logIn(browser, server, webRequest(over)));
      const form = { grant_type: 'authorization_code', code: String(code), redirect_uri: WEB_CALLBACK };
      const tokens = await token(browser, { ...form, client_id: 'web', client_secret: 'web-secret' });
      expect(payload(tokens.json().id_token).auth_time).to.be.a('number');
    }
  });
});
