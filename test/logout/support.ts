// The tenant of the logout tests: two applications of one session, and one with URLs of every kind.
import type { Agent, Answer } from '../support/agent.ts';
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
import type { TestServer } from '../support/server.ts';

export const SPA_HOME = 'http://localhost:5173';
export const WEB_HOME = 'https://web.example.test/signed-out';
export const TENANT_HOME = 'https://www.example.test/bye';

/** Returns the test tenant with allow-lists; `over` contains changes by client_id. */
export function logoutTenant(over: Record<string, object> = {}, settings: object = {}) {
  const lists: Record<string, object> = {
    spa: { allowed_logout_urls: [SPA_HOME, `${SPA_HOME}/out?from=spa`] },
    web: { allowed_logout_urls: [WEB_HOME, 'https://*.web.example.test/out', 'com.example.web://out'] },
  };
  return {
    ...tenant,
    tenant: { ...tenant.tenant, allowed_logout_urls: [TENANT_HOME, 'https://www.example.test'], ...settings },
    clients: tenant.clients.map((client) => ({
      ...client,
      ...lists[client.client_id],
      ...over[client.client_id],
    })),
  };
}

const { challenge } = pkce();

/** Whether somebody is logged in at this browser. */
export async function isLoggedIn(browser: Agent): Promise<boolean> {
  const answer = await authorize(browser, spaRequest(challenge, { prompt: 'none' }));
  const { code, error } = responseOf(answer);
  if (code === undefined && error !== 'login_required') throw new Error(`neither in nor out: ${answer.text}`);
  return code !== undefined;
}

/** Logs in at the web application, then silently at the SPA. */
export async function logInAtTwo(browser: Agent, server: TestServer): Promise<void> {
  await logIn(browser, server, webRequest());
  if (!(await isLoggedIn(browser))) throw new Error('single sign-on did not work');
}

/** Returns tokens of the SPA in the existing session. */
export async function moreTokens(
  browser: Agent,
  over: Record<string, string> = {},
): Promise<Record<string, any>> {
  // any: a test reads what it expects, and fails on anything else
  const { verifier, challenge: fresh } = pkce();
  const { code } = responseOf(await authorize(browser, spaRequest(fresh, { prompt: 'none', ...over })));
  const fields = { grant_type: 'authorization_code', client_id: 'spa', redirect_uri: SPA_CALLBACK };
  return (await token(browser, { ...fields, code, code_verifier: verifier })).json();
}

export function v2(browser: Agent, params: Record<string, string> = {}, accept?: string): Promise<Answer> {
  return browser.get(`/v2/logout?${new URLSearchParams(params)}`, accept === undefined ? {} : { accept });
}

/** The Accept header of browsers. */
export const HTML = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';

/** Returns the number of the engine's unexpired records in the store, by model. */
export async function stored(server: TestServer): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  const artifacts = server.store.collection('artifacts');
  let after: string | undefined;
  do {
    const page = await artifacts.list({ limit: 500, ...(after === undefined ? {} : { after }) });
    for (const { model } of page.records) counts[model] = (counts[model] ?? 0) + 1;
    after = page.next;
  } while (after !== undefined);
  return counts;
}

/** Returns the types of the tenant's log events, oldest first. */
export async function events(server: TestServer): Promise<string[]> {
  const { records } = await server.store.collection('logs').list({ limit: 1000 });
  return records.map(({ type }) => type);
}
