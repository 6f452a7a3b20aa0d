// The link of a passwordless mail: where it leads, and which browser may go on without being asked.
import type { Context } from 'koa';
import { browserOf, markBrowser, type NamedBrowser } from '../../http/browser.ts';
import { callerKeys } from '../../protection/callers.ts';
import { type Challenges, isTicket } from '../../protection/challenges.ts';
import { authenticationMethod } from '../../records/client-authentication.ts';
import type { Client } from '../../records/collections.ts';
import type { Random } from '../../runtime/random.ts';
import { isOriginOf } from '../../tenant/config.ts';
import type { PasswordlessConnection } from './connection.ts';
import type { LinkParameters } from './requests.ts';

/** Where the link of a mail leads. */
export const LINK_PATH = '/passwordless/verify_redirect';

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
    const query = queryOf({
      ...withDefaults(client, params),
      client_id: client.client_id,
      connection: connection.record.name,
      [connection.channel === 'email' ? 'email' : 'phone_number']: address,
      verification_code: secret,
    });
    return `${baseUrl}${LINK_PATH}?${query}`;
  };
}

/**
 * What the application left out of its link: its first callback, and the flow that it can finish. A code is for
 * who can redeem it: with a secret, or with the verifier of the link's `code_challenge`. Others get tokens.
 */
export function withDefaults(client: Client, params: LinkParameters): LinkParameters {
  const [callback] = client.callbacks;
  const may = (grant: string) => client.grant_types?.includes(grant) === true;
  const redeems = params.code_challenge !== undefined || authenticationMethod(client) !== 'none';
  return {
    response_type: redeems && may('authorization_code') ? 'code' : 'token',
    ...(callback === undefined ? {} : { redirect_uri: callback }),
    ...params,
  };
}

/**
 * The browser that starts a login, where a page of ours or of the application started it: what it asks for it may
 * use without being asked again. Any page can have a form sent, and lead to a link of its own account's afterwards;
 * none can have JSON sent (Fetch §3.3) but from an origin that we allow, and browsers say the origin of every post
 * (Fetch §3.2).
 * @returns undefined for all others, who get no cookie.
 */
export function startingBrowser(
  ctx: Context,
  { client, baseUrl, random }: { client: Client; baseUrl: string; random: Random },
): NamedBrowser | undefined {
  const origin = ctx.get('Origin');
  const isOurs = origin === new URL(baseUrl).origin || isOriginOf(client, origin);
  return isOurs && ctx.is('json') ? markBrowser(ctx, random) : undefined;
}

/** A link that a browser has come by. */
export interface ComingLink {
  client: Client;
  purpose: string;
  subject: string;
  secret: string;
}

/**
 * Whether a link may be used without asking, as a page of its own: in the browser that asked for it. Mail scanners
 * and links planted by others are none. A page of the application that leads there says nothing by itself: it may
 * show what its users write.
 *
 * Browsers that keep no cookie of a third party's are told by their address and that page together, and for a code
 * that was typed there alone: the browser SDK comes so with what its page asked for a moment ago. Somebody else's
 * link would have to be asked for from the same address and planted in the application.
 */
export async function isExpected(
  ctx: Context,
  challenges: Pick<Challenges, 'askedBy'>,
  { client, purpose, subject, secret }: ComingLink,
): Promise<boolean> {
  // Fetch Metadata §2.1: an image or a frame of another page is nobody reading.
  if (ctx.method !== 'GET' || !['', 'document'].includes(ctx.get('Sec-Fetch-Dest'))) return false;
  const browser = browserOf(ctx);
  const [own = ''] = callerKeys({ ip: ctx.ip, browser });
  if (browser !== undefined && (await challenges.askedBy(purpose, subject, own)).length > 0) return true;
  const referrer = URL.parse(ctx.get('Referer'))?.origin ?? '';
  if (isTicket(secret) || !isOriginOf(client, referrer)) return false;
  const [address = ''] = callerKeys({ ip: ctx.ip });
  return (await challenges.askedBy(purpose, subject, address)).some(({ data }) => data.byPage === true);
}

/** Where the browser goes with a login ticket: an authorization request like any other. */
export function authorizationUrl(
  client: Client,
  connection: PasswordlessConnection,
  params: LinkParameters,
  ticket: string,
): string {
  const query = queryOf({
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

function queryOf(params: LinkParameters): URLSearchParams {
  return new URLSearchParams(params as Record<string, string>);
}
