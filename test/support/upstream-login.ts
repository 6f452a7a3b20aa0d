// Logins at an external provider, as a browser goes through them.
import { type Agent, type Answer, createAgent } from './agent.ts';
import { authorize, follow, responseOf, webRequest } from './flows.ts';
import type { TestServer } from './server.ts';

/** A login whose browser has been sent to its provider. */
export interface AtProvider {
  agent: Agent;
  /** The URL to which the authorization endpoint redirected the browser. */
  at: URL;
  /** The URL to which the provider redirects the browser; empty if it does not. */
  back: string;
}

/** Requests an authorization by a connection, and goes to the provider. */
export async function toProvider(
  server: TestServer,
  more: Record<string, string> = {},
  agent = createAgent(server),
): Promise<AtProvider> {
  const answer = await authorize(agent, webRequest({ connection: 'acme', ...more }));
  const gone = await fetch(answer.location, { redirect: 'manual' });
  return { agent, at: new URL(answer.location), back: gone.headers.get('location') ?? '' };
}

/** Returns from the provider, to the application or the next page; by a posted form if that was asked for. */
export async function fromProvider(server: TestServer, { agent, at, back }: AtProvider): Promise<Answer> {
  const isPosted = at.searchParams.get('response_mode') === 'form_post';
  const { origin, pathname, searchParams } = new URL(back);
  const answer = isPosted
    ? agent.request(`${origin}${pathname}`, { form: Object.fromEntries(searchParams) })
    : agent.get(back);
  return follow(agent, await answer, server.url);
}

/** Makes a whole login. @returns the response parameters that the application gets. */
export async function logInUpstream(
  server: TestServer,
  more: Record<string, string> = {},
  agent = createAgent(server),
): Promise<Record<string, string>> {
  return responseOf(await fromProvider(server, await toProvider(server, more, agent)));
}

/** Returns the descriptions of the failed logins in the log. */
export async function failedLogins(server: TestServer): Promise<string[]> {
  const { records } = await server.store
    .collection('logs')
    .list({ where: { field: 'type', equals: 'f' }, limit: 500 });
  return records.map(({ description }) => description ?? '');
}
