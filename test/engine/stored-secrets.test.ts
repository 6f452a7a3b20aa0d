// Secrets in the data directory: somebody who reads it (a backup, a stolen disk) finds nothing that opens a session
// or an API.
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { type Agent, createAgent } from '../support/agent.ts';
import {
  authorize,
  logIn,
  pkce,
  responseOf,
  SPA_CALLBACK,
  spaRequest,
  tenant,
  token,
  webRequest,
} from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { itInFiles } from '../support/store.ts';

/** Returns the content of all files below a directory, as text. */
function contents(directory: string): string {
  return readdirSync(directory, { recursive: true, encoding: 'utf8' })
    .map((name) => join(directory, name))
    .filter((file) => statSync(file).isFile())
    .map((file) => readFileSync(file, 'latin1'))
    .join('\n');
}

interface Held {
  browser: Agent;
  refreshToken: string;
  accessToken: string;
  verifier: string;
  /** An unused code. */
  code: string;
  /** The path of a waiting login. */
  waiting: string;
  /** All values that give access to whoever has them. */
  secrets: Record<string, string>;
}

/** Obtains one of each: a session, a waiting login, a code, opaque and refresh tokens. */
async function takeOneOfEach(server: TestServer): Promise<Held> {
  const browser = createAgent(server);
  const { verifier, challenge } = pkce();
  const request = spaRequest(challenge, { scope: 'openid profile offline_access' });
  const exchanged = await token(browser, {
    grant_type: 'authorization_code',
    client_id: 'spa',
    code: responseOf(await logIn(browser, server, request)).code,
    code_verifier: verifier,
    redirect_uri: SPA_CALLBACK,
  });
  const { access_token: accessToken, refresh_token: refreshToken } = exchanged.json();
  const code = responseOf(await authorize(browser, request)).code ?? '';
  const { location } = await authorize(browser, webRequest({ prompt: 'login' }));
  const waiting = new URL(location).pathname;
  const cookies = Object.fromEntries(
    browser.cookies().map(({ name, path, value }) => [`the cookie ${name} of ${path}`, value]),
  );
  expect(Object.keys(cookies).join()).to.contain('session').and.contain('interaction').and.contain('resume');
  const secrets = {
    ...cookies,
    'the waiting login': waiting.slice('/u/'.length),
    'the access token': accessToken,
    'the refresh token': refreshToken,
    'the code': code,
  };
  return { browser, verifier, refreshToken, accessToken, code, waiting, secrets };
}

async function stillWorks(held: Held): Promise<void> {
  const { browser, accessToken, refreshToken, code, verifier } = held;
  const profile = await browser.get('/userinfo', { authorization: `Bearer ${accessToken}` });
  expect(profile.status, 'the access token').to.equal(200);
  const fields = { client_id: 'spa', redirect_uri: SPA_CALLBACK };
  const exchanged = await token(browser, {
    grant_type: 'authorization_code',
    code,
    code_verifier: verifier,
    ...fields,
  });
  expect(exchanged.status, 'the code').to.equal(200);
  const refreshed = await token(browser, {
    grant_type: 'refresh_token',
    refresh_token: refreshToken,
    ...fields,
  });
  expect(refreshed.status, 'the refresh token').to.equal(200);
  const again = await token(browser, { grant_type: 'refresh_token', refresh_token: refreshToken, ...fields });
  expect(again.json(), 'the refresh token, used').to.include({ error: 'invalid_grant' });
  expect((await browser.get(`${held.waiting}/login`)).status, 'the waiting login').to.equal(200);
  const silent = await authorize(browser, webRequest({ prompt: 'none' }));
  expect(responseOf(silent), 'the session').to.have.property('code');
}

describe('the store', () => {
  let dataDir: string;
  beforeEach(() => {
    dataDir = mkdtempSync(join(tmpdir(), 'gatehouse-secrets-'));
  });
  afterEach(() => rmSync(dataDir, { recursive: true, force: true }));

  const nothingIn = (text: string, secrets: Record<string, string>) => {
    for (const [what, value] of Object.entries(secrets)) {
      expect(value, what).to.have.length.above(15);
      expect(text.includes(value), `${what} is there`).to.equal(false);
    }
  };

  itInFiles('holds no session cookie, code or token, while the server runs and after it', async () => {
    const server = await startServer({ tenant, dataDir });
    let held: Held;
    try {
      held = await takeOneOfEach(server);
      nothingIn(contents(join(dataDir, 'store')), held.secrets);
      await stillWorks(held);
    } finally {
      await server.stop();
    }
    nothingIn(contents(join(dataDir, 'store')), held.secrets);
    expect(contents(join(dataDir, 'store'))).to.contain('"accountId"');
  });
});
