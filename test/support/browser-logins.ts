// Logins in a browser, each from an authorization request until the redirect to the application.
import { type Agent, type Answer, readForm } from './agent.ts';
import { authorize, follow, logIn, USER, WEB_CALLBACK } from './flows.ts';
import { nextMessageTo } from './inbox.ts';

export const REALM_GRANT = 'http://auth0.com/oauth/grant-type/password-realm';

interface Server {
  url: string;
  ca: string;
  dataDir: string;
}

/** The parameters of an authorization request. */
type Request = Record<string, string>;

/** Opens a request's hosted page. */
export async function openPage(agent: Agent, server: Server, request: Request): Promise<Answer> {
  return follow(agent, await authorize(agent, request), server.url);
}

/** Logs in with a password on the hosted page. */
export function byPassword(agent: Agent, server: Server, request: Request, email = USER.email) {
  return logIn(agent, server, request, { email, password: USER.password });
}

/** Signs up on the hosted page. */
export async function bySignUp(agent: Agent, server: Server, request: Request, email: string) {
  const page = await openPage(agent, server, { ...request, screen_hint: 'signup' });
  const { action, fields } = readForm(page, 'email');
  const form = { ...fields, email, password: USER.password };
  return follow(agent, await agent.request(action, { form }), server.url);
}

/** Logs in with a code on the hosted page of a passwordless connection. */
export async function byCode(
  agent: Agent,
  server: Server,
  request: Request,
  { connection, address }: { connection: string; address: string },
): Promise<Answer> {
  const page = await openPage(agent, server, request);
  const uid = uidOf(page);
  const first = readForm(await agent.get(`/u/${uid}/passwordless/${connection}`), 'address');
  const sent = await agent.request(first.action, { form: { ...first.fields, address } });
  const { action, fields } = readForm(sent, 'code');
  const { code = '' } = await nextMessageTo(server, address, 1, 'code');
  return follow(agent, await agent.request(action, { form: { ...fields, code } }), server.url);
}

/** Logs in with the link in an e-mail, in the browser that requested it on a page of the web application. */
export async function byLink(
  agent: Agent,
  server: Server,
  client: { client_id: string; client_secret?: string },
  email: string,
): Promise<Answer> {
  await agent.request('/passwordless/start', {
    json: { ...client, connection: 'email', email, send: 'link' },
    headers: { origin: new URL(WEB_CALLBACK).origin },
  });
  const { link = '' } = await nextMessageTo(server, email, 1, 'link');
  const { pathname, search } = new URL(link);
  return follow(agent, await agent.get(pathname + search), server.url);
}

/** Returns a login ticket for credentials, as the application's own login page requests it. */
export async function ticketFor(agent: Agent, origin: string, credentials: object): Promise<string> {
  const answer = await agent.request('/co/authenticate', {
    json: { client_id: 'spa', ...credentials },
    headers: { origin },
  });
  if (answer.status !== 200) throw new Error(answer.text);
  return answer.json().login_ticket;
}

/** Returns the uid of the waiting request that a hosted page belongs to. */
export function uidOf(page: Answer): string {
  const uid = /\/u\/([\w-]{21,})/.exec(page.text)?.[1];
  if (uid === undefined) throw new Error(`not a hosted page:\n${page.text}`);
  return uid;
}
