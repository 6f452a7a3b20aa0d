// What tests of the bridges share: a new tenant with the users of the old one, an open move, and a browser at both.

import type { Waits } from '../../src/runtime/waits.ts';
import { type Agent, type Answer, createAgent } from '../support/agent.ts';
import { API, SPA_CALLBACK, type tenant } from '../support/flows.ts';
import { startServer, type TestServer, type TestServerOptions } from '../support/server.ts';
import { tenantWith } from '../support/tenant.ts';
import { addUsers, MOVE_CLIENT, SESSION_CLIENT, type StandIn } from './stand-in.ts';

export const DAY = 86_400_000;

/** The tenant that takes the place of the old one. */
export const newTenant = tenantWith({
  users: [],
  guardianFactors: [{ name: 'otp', enabled: true }],
  connections: [
    {
      name: 'google-oauth2',
      strategy: 'google-oauth2',
      options: { client_id: 'id-here', client_secret: 'secret-here' },
      enabled_clients: ['web', 'spa'],
    },
  ],
});

/** Starts the new tenant. The move is open, and so are its bridges for sessions and refresh tokens. */
export async function startNew(
  old: StandIn,
  tenantOfTest: typeof tenant = newTenant,
  waits: Waits = {},
  open?: TestServerOptions['open'],
): Promise<TestServer> {
  const server = await startServer({ tenant: tenantOfTest, waits, ...(open && { open }) });
  await addUsers(server);
  await old.gatehouse.store.collection('clients').update(SESSION_CLIENT.client_id, (client) => ({
    ...client,
    callbacks: [`${server.url}/move/callback`],
    allowed_logout_urls: [`${server.url}/logout/callback`],
  }));
  await openBridges(server, old);
  return server;
}

/** Opens the bridges anew. */
export async function openBridges(server: TestServer, old: StandIn, more: object = {}): Promise<void> {
  const now = Date.now();
  const bridge = {
    opened_at: new Date(now).toISOString(),
    until: new Date(now + 7 * DAY).toISOString(),
  };
  await server.store.collection('moves').put({
    id: 'move',
    ...bridge,
    origin: old.origin,
    management: MOVE_CLIENT,
    passwords: {},
    sessions: { ...bridge, ...SESSION_CLIENT },
    refresh_tokens: bridge,
    ...more,
  });
}

/** A browser with cookies of both servers. */
export interface Browser {
  here: Agent;
  there: Agent;
  /** Follows redirects at both, up to the first page or to the application. */
  follow(answer: Answer): Promise<Answer>;
}

export function browserAt(server: Pick<TestServer, 'url' | 'ca'>, old: StandIn): Browser {
  const here = createAgent(server);
  const there = createAgent({ url: old.origin, ca: old.ca });
  const follow = async (first: Answer): Promise<Answer> => {
    let answer = first;
    for (let hops = 0; answer.status >= 300 && answer.status < 400 && hops < 20; hops++) {
      const { origin } = new URL(answer.location);
      if (origin !== server.url && origin !== old.origin) return answer;
      answer = await (origin === old.origin ? there : here).get(answer.location);
    }
    return answer;
  };
  return { here, there, follow };
}

/** Returns the log events of a type, without those that tests do not read. */
export async function eventsOf(server: TestServer, type: string) {
  await new Promise((resolve) => setImmediate(resolve));
  const { records } = await server.store
    .collection('logs')
    .list({ where: { field: 'type', equals: type }, limit: 500 });
  return records;
}

/** The parameters of tokens that an application may refresh. */
export const OFFLINE = {
  scope: 'openid profile email offline_access read:things',
  audience: API,
  redirect_uri: SPA_CALLBACK,
};
