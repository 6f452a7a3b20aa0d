// Passwordless links: their URLs, and which browsers need not confirm them (docs/reference/wire/passwordless.md).
import type { Context } from 'koa';
import { type Challenges, isTicket } from '../../../capabilities/protection/challenges.ts';
import { callerKeys } from '../../../capabilities/protection/rate-limit.ts';
import { browserOf, type NamedBrowser, nameBrowser } from '../../../http/server/browser-cookie.ts';
import { firstAddress, isOriginOf } from '../../../records/clients/allowed-urls.ts';
import { authenticationMethod } from '../../../records/clients/client-authentication.ts';
import type { Client } from '../../../records/collections.ts';
import type { Random } from '../../../runtime/secrets.ts';
import type { PasswordlessConnection } from './connection.ts';
import type { LinkParameters } from './link-request.ts';

/** Path of the link in a mail. */
export const LINK_PATH = '/passwordless/verify_redirect';

/** Returns a function from a secret to the URL of its link. The host is the configured one, never that of the request. */
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
      [connection.strategy.kind]: address,
      verification_code: secret,
    });
    return `${baseUrl}${LINK_PATH}?${query}`;
  };
}

// docs/understand/decisions/passwordless-messages.md#a-link-without-parameters-leads-to-the-applications-first-callback
/**
 * Adds defaults to a link's parameters: the application's first callback, and a response type. That is `code` if the
 * application can redeem one (by its secret, or because the link has a `code_challenge`), else `token`.
 */
export function withDefaults(client: Client, params: LinkParameters): LinkParameters {
  const callback = firstAddress(client.callbacks);
  const mayUse = (grant: string) => client.grant_types?.includes(grant) === true;
  const canRedeem = params.code_challenge !== undefined || authenticationMethod(client) !== 'none';
  return {
    response_type: canRedeem && mayUse('authorization_code') ? 'code' : 'token',
    ...(callback === undefined ? {} : { redirect_uri: callback }),
    ...params,
  };
}

// docs/understand/decisions/passwordless-messages.md#the-requesting-browser-is-recorded-only-for-json-posts-from-the-applications-own-origins
/**
 * Returns the browser that starts a login from a page of ours or of the application; it may use the link without confirming.
 * A page of an attacker could post a form and later plant a link to the attacker's account. It cannot post JSON, which only
 * allowed origins can (Fetch §3.3), and browsers send `Origin` with every POST (Fetch §3.2).
 * @returns undefined for other requests; no cookie is set for them.
 */
export function startingBrowser(
  ctx: Context,
  { client, baseUrl, random }: { client: Client; baseUrl: string; random: Random },
): NamedBrowser | undefined {
  const origin = ctx.get('Origin');
  const isOurs = origin === new URL(baseUrl).origin || isOriginOf(client, origin);
  return isOurs && ctx.is('json') ? nameBrowser(ctx, random) : undefined;
}

interface FollowedLink {
  client: Client;
  purpose: string;
  subject: string;
  secret: string;
}

// docs/understand/decisions/passwordless-messages.md#a-link-logs-in-without-confirmation-only-in-the-browser-that-requested-it
/**
 * Returns whether a link may be used without confirmation: as a top-level page in the browser that requested it. This excludes
 * mail scanners, and links that others planted. A `Referer` of the application alone proves nothing, because the application
 * may show content of its users.
 *
 * A code typed at a page of the application (the browser SDK's `passwordlessVerify`) may come without our cookie where
 * browsers block third-party cookies. Then IP address and `Referer` together suffice; an attacker would need both.
 */
export async function isExpected(
  ctx: Context,
  challenges: Pick<Challenges, 'requestedBy'>,
  { client, purpose, subject, secret }: FollowedLink,
): Promise<boolean> {
  // Fetch Metadata §2.1: not as an image, and not in a frame.
  if (ctx.method !== 'GET' || !['', 'document'].includes(ctx.get('Sec-Fetch-Dest'))) return false;
  const browser = browserOf(ctx);
  const [browserKey = ''] = callerKeys({ ip: ctx.ip, browser });
  if (browser !== undefined && (await challenges.requestedBy(purpose, subject, browserKey)).length > 0)
    return true;
  const referrer = URL.parse(ctx.get('Referer'))?.origin ?? '';
  if (isTicket(secret) || !isOriginOf(client, referrer)) return false;
  const [address = ''] = callerKeys({ ip: ctx.ip });
  return (await challenges.requestedBy(purpose, subject, address)).some(({ data }) => data.byPage === true);
}

/** Returns the path and query of the authorization request with a login ticket. */
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

function queryOf(params: LinkParameters): URLSearchParams {
  return new URLSearchParams(params as Record<string, string>);
}
