// What every example of an application does, in a browser: log in, call an API, log out; and what its API refuses.
import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { createAgent } from '../support/agent.ts';
import { launchBrowser, type TestBrowser } from '../support/browser.ts';
import { API, logIn, pkce, responseOf, token } from '../support/flows.ts';
import { every, until } from '../support/wait-until.ts';
import { ADA, control, type Example, type ExampleOptions, logInAs, startExample } from './example.ts';

/** Declares the tests of an example. */
export function logsInCallsAndLogsOut(name: string, options?: ExampleOptions): void {
  describe(`the example ${name}`, () => {
    let example: Example;
    let browser: TestBrowser;
    let page: Page;
    before(async () => {
      example = await startExample(name, options);
      browser = await launchBrowser(example.server.ca);
      page = await (await browser.newContext()).newPage();
    });
    after(async () => {
      await browser?.close();
      await example?.stop();
    });

    it('logs in, calls its API with an access token, and logs out', async () => {
      await page.goto(example.origin);
      await control(page, 'Log in').click();
      await logInAs(page);
      await page.getByText(`You are logged in as ${ADA.email}.`).waitFor();
      await control(page, 'Call the API').click();
      const answer = page.getByRole('status').filter({ hasText: /\S/ });
      expect(await answer.textContent()).to.match(/^The API knows you as auth0\|/);
      await control(page, 'Log out').click();
      await control(page, 'Log in').waitFor();
      // The session at Gatehouse has ended as well: it asks for the password again.
      await control(page, 'Log in').click();
      await page.getByLabel('Password', { exact: true }).waitFor();
    });

    it('does not serve the tenant file of Gatehouse, which is in its folder', async () => {
      // The queries are those by which Vite gives the text of a file.
      for (const path of ['config/tenant.yaml', 'config/tenant.yaml?raw', 'config/tenant.yaml?import&raw'])
        expect(await textAt(example.origin, path), path).not.to.contain('databases:');
    });

    it('has an API that refuses a request without a token, and a token that lacks the scope', async () => {
      const call = async (headers = {}) =>
        (await fetch(`${example.apiOrigin}/api/messages`, { headers })).status;
      // It may start later than the application.
      const answers = () =>
        call().then(
          () => true,
          () => false,
        );
      await until(answers, every(100));
      expect(await call()).to.equal(401);
      expect(await call({ authorization: 'Bearer x' })).to.equal(401);
      expect(await call({ authorization: `Bearer ${await tokenWithoutScope(example)}` })).to.equal(403);
    });
  });
}

/** Returns what an application sends at a path, after the redirects that stay within it: others lead to a login. */
async function textAt(origin: string, path: string): Promise<string> {
  let answer = await fetch(`${origin}/${path}`, { redirect: 'manual' });
  for (let i = 0; i < 10; i++) {
    const to = answer.headers.get('location') ?? undefined;
    const next = to === undefined ? undefined : new URL(to, answer.url);
    if (next?.origin !== origin) break;
    await answer.body?.cancel();
    answer = await fetch(next, { redirect: 'manual' });
  }
  return answer.text();
}

/** Returns a user's access token for the API of the example, without a scope of the API. */
async function tokenWithoutScope({ server, tenant }: Example): Promise<string> {
  const agent = createAgent(server);
  const { verifier, challenge } = pkce();
  const { client_id = '', client_secret, callbacks } = tenant.clients[0] ?? {};
  const redirect_uri = callbacks?.[0] ?? '';
  const request = {
    client_id,
    redirect_uri,
    response_type: 'code',
    audience: API,
    scope: 'openid',
    state: 's',
    code_challenge: challenge,
    code_challenge_method: 'S256',
  };
  const { code } = responseOf(await logIn(agent, server, request, ADA));
  const grant = { grant_type: 'authorization_code', client_id, client_secret, redirect_uri };
  return (await token(agent, { ...grant, code, code_verifier: verifier })).json().access_token;
}
