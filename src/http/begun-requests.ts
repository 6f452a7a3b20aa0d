// Remembers in the browser which application began which login request, so that the page of a request that is over can send
// the user to where its application begins a login. It is a hint, and proves nothing.
// docs/understand/decisions/authorize.md#the-page-of-a-login-request-that-is-over-leads-to-where-a-login-begins
import type { Context } from 'koa';

const NAME = '__Host-gatehouse_begun';

/** The most requests that are remembered. */
const MAX_REQUESTS = 10;

/** How long, milliseconds: people return to a page by a bookmark, too. */
const LIFETIME_MS = 30 * 24 * 3600 * 1000;

/** Characters of a request's id that tell the requests of one browser apart. */
const ID_LENGTH = 10;

export function rememberBegun(ctx: Context, uid: string, clientId: string): void {
  const begun: [string, string][] = [[uid.slice(0, ID_LENGTH), clientId], ...(begunRequests(ctx) ?? [])];
  ctx.cookies.set(NAME, String(new URLSearchParams(begun.slice(0, MAX_REQUESTS))), {
    httpOnly: true,
    secure: true,
    sameSite: 'lax',
    path: '/',
    maxAge: LIFETIME_MS,
  });
}

/**
 * Returns the client_id of the application that began a request in this browser; the empty string for a request that is not
 * remembered, and undefined in a browser that has no cookies.
 */
export function begunBy(ctx: Context, uid: string): string | undefined {
  const begun = begunRequests(ctx);
  return begun && (begun.find(([id]) => id === uid.slice(0, ID_LENGTH))?.[1] ?? '');
}

function begunRequests(ctx: Context): [string, string][] | undefined {
  const cookie = ctx.cookies.get(NAME);
  return cookie === undefined ? undefined : [...new URLSearchParams(cookie)];
}
