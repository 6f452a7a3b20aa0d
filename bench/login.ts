// A login on the hosted page, as a browser and an application make it, for benchmarks.
import { createAgent, readForm } from '../test/support/agent.ts';
import { client, PASSWORD } from './fixture.ts';
import { PROXIED } from './server.ts';

const CALLBACK = 'https://app.example.test/callback';

/** The answer of the token endpoint. */
type Tokens = Record<string, string>;

/** Returns functions that call a server's endpoints. @param address where it listens. */
export function createCaller(address: string) {
  const answered = async (path: string, init: RequestInit): Promise<Tokens> => {
    const answer = await fetch(`${address}${path}`, init);
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
    return answer.json() as Promise<Tokens>;
  };
  return {
    token: (fields: Record<string, string>) =>
      answered('/oauth/token', { method: 'POST', body: new URLSearchParams(fields), headers: PROXIED }),
    userinfo: (accessToken: string) =>
      answered('/userinfo', { headers: { ...PROXIED, authorization: `Bearer ${accessToken}` } }),
  };
}

/** Logs in with a new browser, and exchanges the code. */
export async function logIn(address: string, scope: string): Promise<Tokens> {
  const agent = createAgent({ url: address, ca: '' });
  const here = (location: string) => {
    const { pathname, search } = new URL(location);
    return `${pathname}${search}`;
  };
  const query = new URLSearchParams({
    client_id: client.client_id,
    response_type: 'code',
    redirect_uri: CALLBACK,
    scope,
    state: 'simulated',
  });
  let page = await agent.get(`/authorize?${query}`, PROXIED);
  while (page.status === 302 || page.status === 303) page = await agent.get(here(page.location), PROXIED);
  const { action, fields } = readForm(page, 'password');
  const form = { ...fields, username: PASSWORD.username, password: PASSWORD.password };
  let answer = await agent.request(action, { form, headers: PROXIED });
  while (!answer.location.startsWith(CALLBACK)) {
    if (answer.location === '') throw new Error(`the login ended with ${answer.status}: ${answer.text}`);
    answer = await agent.get(here(answer.location), PROXIED);
  }
  const code = new URL(answer.location).searchParams.get('code') ?? '';
  const grant = { ...client, grant_type: 'authorization_code', code, redirect_uri: CALLBACK };
  return createCaller(address).token(grant);
}
