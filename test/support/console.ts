// Access to the console for tests: a server with one administrator of each role, and logged-in agents and browsers.
import type { Page } from 'playwright-core';
import { addAdministrator } from '../../src/features/console/administrators/console-administrator-members.ts';
import { type AdministratorRole, ROLES } from '../../src/records/users/administrators.ts';
import { type Agent, type AgentRequest, type Answer, createAgent, readForm } from './agent.ts';
import { follow, tenant } from './flows.ts';
import { startServer, type TestServer } from './server.ts';

export const PASSWORD = 'Console-Horse-1';
/** Returns the e-mail address of the administrator with a role. */
export const addressOf = (role: AdministratorRole) => `${role}@console.example.test`;

/** A logged-in administrator. */
export interface ConsoleAgent {
  agent: Agent;
  /** Opens a page, logging in where it is required. */
  get(path: string, headers?: Record<string, string>): Promise<Answer>;
  /** Sends a form with the CSRF token of the session's pages; does not follow redirects. */
  post(path: string, form?: Record<string, string> | [string, string][]): Promise<Answer>;
}

/** Starts a server with an administrator of each role, by default for the tenant that most tests use. */
export async function startConsole(
  options: Partial<Parameters<typeof startServer>[0]> = {},
): Promise<TestServer> {
  const server = await startServer({ tenant, ...options });
  await addAdministrators(server);
  return server;
}

/** Creates an administrator of each role. */
export async function addAdministrators(server: TestServer): Promise<void> {
  for (const role of ROLES) {
    const made = { email: addressOf(role), name: `The ${role}`, password: PASSWORD, role };
    await addAdministrator({ ...server, wallClock: Date.now }, made);
  }
}

/** Logs an administrator in and opens the overview. */
export async function openConsole(
  server: TestServer,
  role: AdministratorRole = 'owner',
): Promise<ConsoleAgent> {
  const agent = createAgent(server);
  const get = async (path: string, headers: Record<string, string> = {}): Promise<Answer> => {
    const page = await follow(agent, await agent.get(path, headers), server.url);
    // A member of a page's model must not replace the layout's `nonce` or `lang`: browsers would refuse its scripts and styles.
    if (/ nonce=""|<html lang=""/.test(page.text)) throw new Error(`${path} has no nonce`);
    // Other pages of the console have password fields, too.
    if (!page.text.includes('name="password"') || page.text.includes('name="console-token"')) return page;
    return follow(agent, await submitPassword(agent, page, role), server.url);
  };
  const overview = await get('/console');
  if (overview.status !== 200) throw new Error(overview.text);
  return {
    agent,
    get,
    post: async (path, form = {}) => {
      const { _csrf = '' } = readForm(await get('/console'), '_csrf').fields;
      const fields: [string, string][] = Array.isArray(form) ? form : Object.entries(form);
      const request: AgentRequest = { form: [...fields, ['_csrf', _csrf]] };
      return agent.request(path, request);
    },
  };
}

async function submitPassword(agent: Agent, page: Answer, role: AdministratorRole): Promise<Answer> {
  const { action, fields } = readForm(page, 'password');
  const form = { ...fields, username: addressOf(role), password: PASSWORD };
  return agent.request(action, { form });
}

/** Logs an administrator in with a real browser and opens the page at `path`. */
export async function openConsolePage(
  page: Page,
  server: TestServer,
  { role = 'owner', path = '/console' }: { role?: AdministratorRole; path?: string } = {},
): Promise<void> {
  await page.goto(`${server.url}${path}`);
  await page.locator('input[name="username"]').fill(addressOf(role));
  await page.locator('input[name="password"]').fill(PASSWORD);
  await page.locator('form button[type="submit"]').first().click();
  await page.waitForURL((url) => url.pathname.startsWith('/console'));
}
