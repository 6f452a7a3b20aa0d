// The requests to the servers with the benchmark tenant, each with tokens that the server has issued.
import { client, MACHINE, PASSWORD } from './fixture.ts';
import { local, PROXIED, type Started } from './server.ts';

export interface Asked {
  path: string;
  fields?: Record<string, string>;
  headers?: Record<string, string>;
}

/** Returns the requests by name. @throws Error when the server issues no tokens. */
export async function requestsTo(server: Started) {
  const body = new URLSearchParams(PASSWORD);
  const answer = await fetch(`${local(server)}/oauth/token`, { method: 'POST', body, headers: PROXIED });
  if (!answer.ok) throw new Error(`${answer.status} ${await answer.text()}`);
  const tokens = (await answer.json()) as Record<string, string>;
  const refresh = { ...client, grant_type: 'refresh_token', refresh_token: String(tokens.refresh_token) };
  return {
    client_credentials: { path: '/oauth/token', fields: MACHINE },
    refresh_token: { path: '/oauth/token', fields: refresh },
    userinfo: { path: '/userinfo', headers: { authorization: `Bearer ${tokens.access_token}` } },
  } satisfies Record<string, Asked>;
}
