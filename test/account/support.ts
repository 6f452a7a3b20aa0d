// Opens the account page in tests, and submits its forms.
import { type Agent, type Answer, readForm } from '../support/agent.ts';
import { follow, submitLogin, USER } from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';

/** Opens a page of the account page, and logs in if it asks for that. */
export async function openAccount(
  agent: Agent,
  server: TestServer,
  path = '/account',
  user: { email: string; password: string } = USER,
): Promise<Answer> {
  const page = await follow(agent, await agent.get(path), server.url);
  return page.text.includes('name="password"') ? submitLogin(agent, server, page, user) : page;
}

/** Submits a form of a page: the first one that posts to `action`. */
export async function send(
  agent: Agent,
  page: Answer,
  action: string,
  values: Record<string, string> = {},
): Promise<Answer> {
  return agent.request(action, { form: { ...formOf(page, action), ...values } });
}

/** Returns the hidden fields of that form. */
export function formOf(page: Answer, action: string): Record<string, string> {
  const form = page.text.split('<form').find((part) => part.includes(`action="${action}"`));
  if (form === undefined) throw new Error(`no form posts to ${action}`);
  return readForm({ ...page, text: `<form${form.slice(0, form.indexOf('</form>'))}</form>` }, '_csrf').fields;
}
