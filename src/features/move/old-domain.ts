// The custom domain of the old tenant. Its name leads here after the move, so browsers send us the cookies of their session there;
// the hosted service goes on answering for it to whoever knows where to ask.
// docs/understand/decisions/moving.md#with-a-custom-domain-this-server-asks-in-the-browsers-place
import type { Context } from 'koa';
import { tenantHostOf } from '../../http/server/request-target.ts';
import type { Frozen } from '../../records/base/record.ts';
import type { OldDomain } from '../../records/tenant/move.ts';
import { type OldAddress, OldTenantFault, type SendToOldTenant } from './old-requests.ts';

/**
 * Returns where the custom domain is asked.
 * @param origin that of the custom domain, which is ours now.
 * @param ip the user's address; undefined for what no user has sent.
 * @returns undefined where its key is lost.
 */
export function domainAddress(
  { host, by_key: isByKey, cname_api_key: key }: Frozen<OldDomain>,
  origin: string,
  ip?: string,
): OldAddress | undefined {
  if (!isByKey) return { origin, via: host };
  if (key === undefined) return undefined;
  // As a proxy of the custom domain has to, by the hosted service's documentation of self-managed certificates.
  const headers = { 'cname-api-key': key, ...(ip !== undefined && { 'x-forwarded-for': ip }) };
  return { origin: `https://${host}`, headers };
}

/** The cookies of a session at the hosted service; the second is for browsers that do not know `SameSite=None`. */
const NAMES = ['auth0', 'auth0_compat'] as const;
/** The most characters of both, with their names. */
const MAX_LENGTH = 4096;
/** A cookie-value without quotes (RFC 6265 §4.1.1): nothing in it ends the cookie, or the header. */
const VALUE = /^[\x21\x23-\x2B\x2D-\x3A\x3C-\x5B\x5D-\x7E]+$/;

/**
 * Returns the `Cookie` header for the custom domain: what the browser has sent of its session there.
 * @returns undefined for a request to another host, without such a cookie, or with one that cannot be the hosted service's.
 */
export function sessionCookies(ctx: Context, origin: string): string | undefined {
  const { origin: requested, isRequested } = tenantHostOf(ctx);
  if (!isRequested || requested !== origin) return undefined;
  const found = cookiesIn(ctx.get('Cookie')).filter(({ name }) => isSessionCookie(name));
  // Of two with one name, another host below the same domain has set one, and may have logged in somebody else.
  const isAmbiguous = new Set(found.map(({ name }) => name)).size < found.length;
  if (found.length === 0 || isAmbiguous || !found.every(({ value }) => VALUE.test(value))) return undefined;
  const header = found.map(({ name, value }) => `${name}=${value}`).join('; ');
  return header.length <= MAX_LENGTH ? header : undefined;
}

const isSessionCookie = (name: string) => NAMES.some((one) => one === name);

function cookiesIn(header: string): { name: string; value: string }[] {
  return header.split(';').map((pair) => {
    const [name = '', ...value] = pair.split('=');
    return { name: name.trim(), value: value.join('=').trim() };
  });
}

/** Removes the cookies of a session at the custom domain from the browser, where it has sent any. */
export function expireSessionCookies(ctx: Context): void {
  for (const { name } of cookiesIn(ctx.get('Cookie')).filter((one) => isSessionCookie(one.name)))
    ctx.cookies.set(name, null, {
      path: '/',
      httpOnly: true,
      secure: true,
      sameSite: 'none',
      overwrite: true,
    });
}

/** What browsers call themselves; anything else is not passed on. */
const USER_AGENT = /^[\x20-\x7E]{1,512}$/;

/**
 * Sends a request of a browser on to the custom domain, with nothing of it but these cookies, its `User-Agent`, and for a proxy
 * with a key the user's address.
 * @param path with its query.
 * @returns where the old tenant sends the browser.
 * @throws OldTenantFault, OutboundError
 */
export async function askDomain(
  send: SendToOldTenant,
  ctx: Context,
  { address, cookies }: { address: OldAddress; cookies: string },
  path: string,
): Promise<string> {
  const agent = ctx.get('User-Agent');
  const { status, headers } = await send(address, path, {
    headers: {
      accept: 'text/html',
      cookie: cookies,
      ...(USER_AGENT.test(agent) && { 'user-agent': agent }),
    },
    redirect: 'manual',
    headOnly: true,
  });
  const location = headers.get('location');
  if (status < 300 || status >= 400 || location === null)
    throw new OldTenantFault(`its custom domain answered ${status} without leading anywhere`);
  return location;
}

/** The parameters of an answer that are read. */
const ANSWER = ['code', 'error', 'iss'] as const;
export type DomainAnswer = Partial<Record<(typeof ANSWER)[number], string>>;

/**
 * Reads where the old tenant sends the browser.
 * @throws OldTenantFault unless that is our callback, with the state of the question.
 */
export function answerIn(location: string, callback: string, state: string): DomainAnswer {
  const [address, query, ...more] = location.split('?');
  const values = new URLSearchParams(query);
  const isOurs = address === callback && more.length === 0 && !location.includes('#');
  if (!isOurs || values.getAll('state').join('\n') !== state)
    throw new OldTenantFault('its custom domain leads elsewhere than to our callback with our state');
  const found = ANSWER.map((name) => [name, values.getAll(name)] as const);
  if (found.some(([, all]) => all.length > 1))
    throw new OldTenantFault('its custom domain answered with a parameter twice');
  return Object.fromEntries(found.flatMap(([name, all]) => all.map((value) => [name, value])));
}
