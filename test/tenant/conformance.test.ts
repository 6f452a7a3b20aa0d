// The tenant for the conformance suite. Its development user has every claim of the standard.
import { generateKeyPairSync } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import type { BrowserContext, Page } from 'playwright-core';
import { parseTenant } from '../../src/tenant/load.ts';
import { createAgent } from '../support/agent.ts';
import { launchBrowser, type TestBrowser } from '../support/browser.ts';
import { clientCertificate } from '../support/client-certificate.ts';
import { logIn, responseOf, token } from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';

const SUITE = 'https://suite.example.test';
const CALLBACK = `${SUITE}/test/a/gatehouse/callback`;
const SECRET = 'a-secret-of-at-least-32-characters';

const KEY = generateKeyPairSync('rsa', { modulusLength: 2048 })
  .publicKey.export({ type: 'spki', format: 'pem' })
  .toString();

/** The tenant file, with values for its variables. */
async function tenant(): Promise<object> {
  const file = fileURLToPath(new URL('../../config/examples/conformance.yaml', import.meta.url));
  const certificate = (await clientCertificate()).cert;
  const values = {
    SUITE,
    CLIENT_SECRET: SECRET,
    SECOND_SECRET: SECRET,
    KEY_ONE: KEY,
    KEY_TWO: KEY,
    CERTIFICATE_ONE: certificate,
    CERTIFICATE_TWO: certificate,
  };
  return parseTenant(readFileSync(file, 'utf8'), values).tenant;
}

describe('config/examples/conformance.yaml', () => {
  let server: TestServer;
  before(async () => {
    server = await startServer({ tenant: await tenant() });
  });
  after(() => server.stop());

  const claims = async (scope: string): Promise<Record<string, unknown>> => {
    const end = await logIn(
      createAgent(server),
      server,
      { client_id: 'suite', response_type: 'code', redirect_uri: CALLBACK, scope, state: 's' },
      { email: 'ada@example.test', password: 'Correct-Horse-1' },
    );
    const issued = await token(createAgent(server), {
      grant_type: 'authorization_code',
      client_id: 'suite',
      client_secret: SECRET,
      code: responseOf(end).code,
      redirect_uri: CALLBACK,
    });
    const { access_token } = (await issued.json()) as { access_token: string };
    return (await createAgent(server).get('/userinfo', { authorization: `Bearer ${access_token}` })).json();
  };

  it('has a user whose profile contains each claim of each scope', async () => {
    const response = await claims('openid profile email address phone');
    expect(response).to.include({ given_name: 'Ada', gender: 'female', phone_number_verified: true });
    expect(response.address).to.include({ locality: 'London' });
    expect(response.updated_at).to.be.a('number');
    expect(Object.keys(response)).to.have.lengthOf(20);
  });

  it("omits the hosted service's own metadata: the global token revocation endpoint, which is not a URL, and the MFA endpoint", async () => {
    const metadata = (await createAgent(server).get('/.well-known/openid-configuration')).json();
    expect(metadata)
      .to.include.keys('issuer')
      .and.not.have.any.keys('global_token_revocation_endpoint', 'mfa_challenge_endpoint');
  });

  it('returns only the requested claims', async () => {
    expect(Object.keys(await claims('openid email'))).to.have.members(['sub', 'email', 'email_verified']);
  });

  // docs/do/conformance.md#modules-that-a-person-reviews
  describe('what a person sees in the modules that the suite cannot judge', () => {
    let browser: TestBrowser;
    let context: BrowserContext;
    before(async () => {
      browser = await launchBrowser(server.ca);
    });
    beforeEach(async () => {
      context = await browser.newContext();
    });
    after(() => browser?.close());

    const STATIC = { client_id: 'suite', redirect_uri: CALLBACK };
    /** Registers an application as the dynamic plan does. */
    const registered = async (more: object = {}) => {
      const answer = await createAgent(server).request('/oidc/register', {
        json: { client_name: 'A module', redirect_uris: [CALLBACK], ...more },
      });
      expect(answer.status, answer.text).to.equal(201);
      return answer.json().client_id as string;
    };
    const open = async (params: Record<string, string>) => {
      const page = await context.newPage();
      const asked = new URLSearchParams({
        ...{ response_type: 'code', scope: 'openid', state: 's', nonce: 'n' },
        ...params,
      });
      const answer = await page.goto(`${server.url}/authorize?${asked}`);
      return { page, status: answer?.status() };
    };
    const logInAs = async (page: Page, email = 'ada@example.test') => {
      await page.getByLabel('Email address').fill(email);
      await page.getByLabel('Password', { exact: true }).fill('Correct-Horse-1');
      await page.getByRole('button', { name: 'Continue', exact: true }).click();
    };
    /** Logs in at the suite's static application, which is then at its callback with a code. */
    const loggedIn = async (page: Page) => {
      await Promise.all([page.waitForRequest(new RegExp(`^${CALLBACK}\\?code=`)), logInAs(page)]);
    };

    const faults: Record<string, [callback: string, asked: Record<string, string>]> = {
      'oidcc-ensure-redirect-uri-in-authorization-request': [CALLBACK, {}],
      'oidcc-redirect-uri-query-mismatch': [`${CALLBACK}?bar=foo`, { redirect_uri: `${CALLBACK}?foo=bar` }],
      'oidcc-redirect-uri-query-added': [CALLBACK, { redirect_uri: `${CALLBACK}?foo=bar` }],
      'oidcc-ensure-registered-redirect-uri': [CALLBACK, { redirect_uri: `${CALLBACK}/other` }],
    };
    for (const [name, [callback, asked]] of Object.entries(faults))
      it(`${name}: an error page that names redirect_uri, and the browser goes nowhere`, async () => {
        const client_id = await registered({ redirect_uris: [callback, 'https://example.org/redirect'] });
        const elsewhere: string[] = [];
        context.on('request', (request) => {
          if (new URL(request.url()).origin !== server.url) elsewhere.push(request.url());
        });
        const { page, status } = await open({ client_id, ...asked });
        expect(status).to.equal(400);
        expect(await page.getByRole('main').innerText()).to.contain('redirect_uri');
        expect(await page.getByRole('button').count()).to.equal(0);
        expect([new URL(page.url()).origin, elsewhere]).to.deep.equal([server.url, []]);
      });

    for (const member of ['logo_uri', 'policy_uri', 'tos_uri'])
      it(`oidcc-registration-${member.replace('_', '-')}: pages for login and consent that show nothing that a stranger put there`, async () => {
        const client_id = await registered({ [member]: `${SUITE}/images/openid.png` });
        const { page } = await open({ client_id, redirect_uri: CALLBACK });
        const shown = () => page.locator(`[src^="${SUITE}"], [href^="${SUITE}"]`).count();
        await page.getByLabel('Email address').waitFor();
        expect(await shown()).to.equal(0);
        await logInAs(page);
        await page.getByRole('button', { name: 'Allow', exact: true }).waitFor();
        expect(await shown()).to.equal(0);
        // What tells a user about an application that nobody has looked at.
        expect(await page.getByRole('main').innerText()).to.contain(new URL(SUITE).host);
      });

    for (const [name, more] of Object.entries({
      'oidcc-prompt-login': { prompt: 'login' },
      'oidcc-max-age-1': { max_age: '1' },
    }))
      it(`${name}: the login page a second time, although the user has a session`, async () => {
        const first = await open(STATIC);
        await loggedIn(first.page);
        server.tick(2_000);
        const second = await open({ ...STATIC, ...more });
        await loggedIn(second.page);
      });

    it('oidcc-response-type-missing: an error at the callback', async () => {
      const page = await context.newPage();
      const [answered] = await Promise.all([
        page.waitForRequest(new RegExp(`^${CALLBACK}\\?`)),
        page
          .goto(`${server.url}/authorize?${new URLSearchParams({ ...STATIC, scope: 'openid' })}`)
          .catch(() => {}),
      ]);
      expect(new URL(answered.url()).searchParams.get('error')).to.be.oneOf([
        'invalid_request',
        'unsupported_response_type',
      ]);
    });
  });
});
