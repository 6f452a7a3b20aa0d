// Logins at a provider elsewhere, as a browser goes through them.
import { type Agent, type Answer, createAgent } from './agent.ts';
import { authorize, follow, responseOf, webRequest } from './flows.ts';
import type { TestServer } from './server.ts';

/** A login that has gone to its provider. */
export interface AtProvider {
  agent: Agent;
  /** Where the authorization endpoint sent the browser. */
  at: URL;
  /** What the provider sends the browser back to; empty where it does not. */
  back: string;
}

/** Asks for an authorization by a connection, and goes to the provider. */
export async function toProvider(
  server: TestServer,
  more: Record<string, string> = {},
  agent = createAgent(server),
): Promise<AtProvider> {
  const answer = await authorize(agent, webRequest({ connection: 'acme', ...more }));
  const gone = await fetch(answer.location, { redirect: 'manual' });
  return { agent, at: new URL(answer.location), back: gone.headers.get('location') ?? '' };
}

/** Comes back from the provider, and goes on to the application or the next page. */
export async function fromProvider(server: TestServer, { agent, back }: AtProvider): Promise<Answer> {
  return follow(agent, await agent.get(back), server.url);
}

/** A whole login. @returns what the application is told. */
export async function logInUpstream(
  server: TestServer,
  more: Record<string, string> = {},
  agent = createAgent(server),
): Promise<Record<string, string>> {
  return responseOf(await fromProvider(server, await toProvider(server, more, agent)));
}

/** The descriptions of the failed logins that were recorded. */
export async function failedLogins(server: TestServer): Promise<string[]> {
  const { records } = await server.store
    .collection('logs')
    .list({ where: { field: 'type', equals: 'f' }, limit: 500 });
  return records.map(({ description }) => description ?? '');
}
