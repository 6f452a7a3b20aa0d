// The link of a passwordless mail: where it leads, and which browser may go on without being asked.
import { createHash } from 'node:crypto';
import type { Context } from 'koa';
import type { Random } from '../http/runtime.ts';
import type { Challenges } from '../protection/challenges.ts';
import type { Client } from '../tenant/directory.ts';
import type { PasswordlessConnection } from './connection.ts';
import type { LinkParameters } from './requests.ts';

/** Where the link of a mail leads (wire-details 6.2). */
export const LINK_PATH = '/passwordless/verify_redirect';

/** `None`: applications start a login from their own site. */
const COOKIE = '__Host-gatehouse_passwordless';
const BROWSER = /^[\w-]{43}$/;
/** Longer than any code lives. */
const COOKIE_SECONDS = 86_400;

/** The address of a link; the host is ours by configuration, never by the request. */
export function linkTo(
  baseUrl: string,
  {
    client,
    connection,
    address,
    params,
  }: { client: Client; connection: PasswordlessConnection; address: string; params: LinkParameters },
): (secret: string) => string {
  return (secret) => {
    const query = new URLSearchParams({
      ...withDefaults(client, params),
      client_id: client.client_id,
      connection: connection.record.name,
      [connection.channel === 'email' ? 'email' : 'phone_number']: address,
      verification_code: secret,
    });
    return `${baseUrl}${LINK_PATH}?${query}`;
  };
}

/** What the application left out of its link: its first callback, and the flow that it may use. */
export function withDefaults(client: Client, params: LinkParameters): LinkParameters {
  const [callback] = client.callbacks;
  const code = client.grant_types === undefined || client.grant_types.includes('authorization_code');
  return {
    response_type: code ? 'code' : 'token',
    ...(callback === undefined ? {} : { redirect_uri: callback }),
    ...params,
  };
}

/** Marks the browser that starts a login. @returns its fingerprint, which alone is kept. */
export function markBrowser(ctx: Context, random: Random): string {
  const kept = ctx.cookies.get(COOKIE);
  const browser = kept !== undefined && BROWSER.test(kept) ? kept : random(32).toString('base64url');
  ctx.cookies.set(COOKIE, browser, {
    httpOnly: true,
    secure: true,
    sameSite: 'none',
    path: '/',
    maxAge: COOKIE_SECONDS * 1000,
  });
  return fingerprint(browser);
}

/**
 * Whether a link may be used without asking: in the browser that asked for it, or when a page of the
 * application (or of ours) leads there. Mail scanners and links planted by others are neither.
 */
export async function isExpected(
  ctx: Context,
  challenges: Pick<Challenges, 'peekTicket'>,
  { client, baseUrl, purpose, secret }: { client: Client; baseUrl: string; purpose: string; secret: string },
): Promise<boolean> {
  if (ctx.method !== 'GET') return false;
  const referrer = URL.parse(ctx.get('Referer'))?.origin;
  if (referrer !== undefined && originsOf(client, baseUrl).has(referrer)) return true;
  const browser = ctx.cookies.get(COOKIE);
  if (browser === undefined || !BROWSER.test(browser)) return false;
  const waiting = await challenges.peekTicket(purpose, secret);
  return waiting?.data.browser === fingerprint(browser);
}

function originsOf(client: Client, baseUrl: string): Set<string> {
  const callbacks = client.callbacks.flatMap((callback) => URL.parse(callback)?.origin ?? []);
  const origins = new Set([baseUrl, ...client.allowed_origins, ...client.web_origins, ...callbacks]);
  // The origin of every custom scheme: no page's own.
  origins.delete('null');
  return origins;
}

/** Where the browser goes with a login ticket: an authorization request like any other. */
export function authorizationUrl(
  client: Client,
  connection: PasswordlessConnection,
  params: LinkParameters,
  ticket: string,
): string {
  const query = new URLSearchParams({
    ...withDefaults(client, params),
    client_id: client.client_id,
    connection: connection.record.name,
    login_ticket: ticket,
  });
  return `/authorize?${query}`;
}

/** Where the browser goes with a failure, as an authorization request's would (RFC 6749 §4.1.2.1, §4.2.2.1). */
export function failureUrl(
  client: Client,
  params: LinkParameters,
  { error, error_description: description }: { error: string; error_description: string },
): string {
  const {
    redirect_uri: redirectUri = '',
    response_type: type = 'code',
    response_mode: mode,
    state,
  } = withDefaults(client, params);
  const url = new URL(redirectUri);
  const answer = new URLSearchParams({
    error,
    error_description: description,
    ...(state === undefined ? {} : { state }),
  });
  const inQuery = mode === 'query' || (mode === undefined && type === 'code');
  if (inQuery) for (const [name, value] of answer) url.searchParams.append(name, value);
  else url.hash = String(answer);
  return url.href;
}

function fingerprint(browser: string): string {
  return createHash('sha256').update(browser).digest('base64url');
}
