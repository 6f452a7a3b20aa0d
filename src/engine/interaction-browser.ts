// Which browser a waiting request is of. The engine knows by cookies that any sibling sub-domain could plant in
// somebody else's browser (`__Secure-`, with a path): their owner would log in to a request that another browser
// then fetches, or fetch the login of somebody else. So each request has a secret of its own in a cookie that no
// other host can set (`__Host-`, RFC 6265bis §4.1.3.2), and is shown and resumed where that cookie is.
import type { Context } from 'koa';
import { browserCookie } from '../http/browser-cookie.ts';
import { readExtensions } from './request-extensions.ts';

const PREFIX = '__Host-gatehouse_login_';

/** `Lax`, as the engine's own: an interaction begins with a navigation, and none is shown in a frame. */
const cookieOf = (uid: string, ttlSeconds?: number) =>
  browserCookie(`${PREFIX}${uid}`, { sameSite: 'lax', ...(ttlSeconds !== undefined && { ttlSeconds }) });

/** How many requests may wait in one browser; more tabs are forgotten, the oldest first. */
const MOST = 20;

/** What of a waiting request is needed to know its browser. */
interface Waiting {
  uid: string;
  params: Readonly<Record<string, unknown>>;
}

/**
 * Gives this browser the secret of a request that begins to wait.
 * @param ttlSeconds how long it may wait.
 */
export function bindBrowser(ctx: Context, uid: string, secret: string, ttlSeconds: number): void {
  // The oldest first: browsers send cookies in the order in which they were set (RFC 6265 §5.4).
  const older = cookiesOf(ctx);
  for (const name of older.slice(0, Math.max(0, older.length - MOST + 1))) {
    cookieOf(name.slice(PREFIX.length)).forget(ctx);
  }
  cookieOf(uid, ttlSeconds).give(ctx, secret);
}

/** The names of the cookies of all requests that wait in this browser. */
function cookiesOf(ctx: Context): string[] {
  return ctx
    .get('Cookie')
    .split(/;\s*/)
    .map((pair) => pair.split('=')[0] ?? '')
    .filter((name) => name.startsWith(PREFIX));
}

/** Whether a request waits in this browser whose secret has that hash. */
export function bringsSecretOf(ctx: Context, hash: string): boolean {
  return cookiesOf(ctx).some((name) => cookieOf(name.slice(PREFIX.length)).bringsHashed(ctx, hash));
}

/** The secret of a waiting request, where this browser has it. */
export function browserSecretOf(ctx: Context, { uid, params }: Waiting): string | undefined {
  const { browser } = readExtensions(params);
  const cookie = cookieOf(uid);
  return browser !== undefined && cookie.bringsHashed(ctx, browser) ? cookie.secret(ctx) : undefined;
}

/** Has the browser forget a request that waits no more. */
export function releaseBrowser(ctx: Context, uid: string): void {
  cookieOf(uid).forget(ctx);
}
