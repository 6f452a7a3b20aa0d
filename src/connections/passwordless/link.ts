// Passwordless links: where they lead, and which browser need not confirm (docs/wire/passwordless.md).
import type { Context } from 'koa';
import { browserOf, markBrowser, type NamedBrowser } from '../../http/browser.ts';
import { callerKeys } from '../../protection/callers.ts';
import { type Challenges, isTicket } from '../../protection/challenges.ts';
import { authenticationMethod } from '../../records/client-authentication.ts';
import type { Client } from '../../records/collections.ts';
import type { Random } from '../../runtime/random.ts';
import { isOriginOf } from '../../tenant/snapshot.ts';
import type { PasswordlessConnection } from './connection.ts';
import type { LinkParameters } from './link-request.ts';

/** Where the link of a mail leads. */
export const LINK_PATH = '/passwordless/verify_redirect';

/** The address of a link; its host is the configured one, never the request's. */
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

/**
 * Fills in what the application left out: its first callback, and a response type that it can use. A code if it can redeem
 * one (by a secret, or the verifier of the link's `code_challenge`), else tokens.
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
 * The browser that starts a login from a page of ours or of the application; it may use the link without confirming. Any
 * page can post a form and plant a link to its own account later, but JSON only from an allowed origin (Fetch §3.3), and
 * browsers send `Origin` with every post (Fetch §3.2).
 * @returns undefined for all others, which get no cookie.
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
interface ComingLink {
  client: Client;
  purpose: string;
  subject: string;
  secret: string;
}

/**
 * Whether a link may be used without confirming: as a top-level page in the browser that asked for it, so not by mail
 * scanners or links planted by others. A referring page of the application proves nothing: it may show users' content.
 *
 * Without third-party cookies, address and referring page together suffice for a code typed at the application's page: the
 * browser SDK's `passwordlessVerify` comes so. An attacker would need the same address and a page of the application.
 */
export async function isExpected(
  ctx: Context,
  challenges: Pick<Challenges, 'askedBy'>,
  { client, purpose, subject, secret }: ComingLink,
): Promise<boolean> {
  // Fetch Metadata §2.1: not as an image or in a frame of another page.
  if (ctx.method !== 'GET' || !['', 'document'].includes(ctx.get('Sec-Fetch-Dest'))) return false;
  const browser = browserOf(ctx);
  const [own = ''] = callerKeys({ ip: ctx.ip, browser });
  if (browser !== undefined && (await challenges.askedBy(purpose, subject, own)).length > 0) return true;
  const referrer = URL.parse(ctx.get('Referer'))?.origin ?? '';
  if (isTicket(secret) || !isOriginOf(client, referrer)) return false;
  const [address = ''] = callerKeys({ ip: ctx.ip });
  return (await challenges.askedBy(purpose, subject, address)).some(({ data }) => data.byPage === true);
}

/** The authorization request that uses the login ticket. */
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
