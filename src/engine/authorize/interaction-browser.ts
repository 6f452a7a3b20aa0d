// Binds each waiting request to its browser. The engine relies on cookies that any sibling sub-domain could set in
// another user's browser (`__Secure-`, with a path). An attacker could so make a victim log in to a request that
// the attacker's browser then resumes, or resume the victim's login. Therefore each request has a secret in a
// cookie that no other host can set (`__Host-`, RFC 6265bis §4.1.3.2), and is shown and resumed only in a browser
// that has it.
import type { Context } from 'koa';
import { browserCookie } from '../../http/browser-cookie.ts';
import { readExtensions } from '../base/request-extensions.ts';

const PREFIX = '__Host-gatehouse_login_';

/** `Lax`, like the engine's own cookie: an interaction begins with a navigation, and none is shown in a frame. */
const cookieOf = (uid: string, ttlSeconds?: number) =>
  browserCookie(`${PREFIX}${uid}`, { sameSite: 'lax', ...(ttlSeconds !== undefined && { ttlSeconds }) });

/** The most requests that wait in one browser. A further one makes the oldest invalid there. */
const MAX_WAITING = 20;

/** The members of a waiting request that identify its browser. */
interface BoundRequest {
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
  for (const name of older.slice(0, Math.max(0, older.length - MAX_WAITING + 1))) {
    cookieOf(name.slice(PREFIX.length)).clear(ctx);
  }
  cookieOf(uid, ttlSeconds).set(ctx, secret);
}

/** Returns the names of the cookies of all requests that wait in this browser. */
function cookiesOf(ctx: Context): string[] {
  return ctx
    .get('Cookie')
    .split(/;\s*/)
    .map((pair) => pair.split('=')[0] ?? '')
    .filter((name) => name.startsWith(PREFIX));
}

/** Whether this browser has a secret with this hash. */
export function hasBrowserSecret(ctx: Context, hash: string): boolean {
  return cookiesOf(ctx).some((name) => cookieOf(name.slice(PREFIX.length)).matchesHash(ctx, hash));
}

/** Returns the secret of a waiting request; undefined when this browser does not have it. */
export function browserSecretOf(ctx: Context, { uid, params }: BoundRequest): string | undefined {
  const { browser } = readExtensions(params);
  const cookie = cookieOf(uid);
  return browser !== undefined && cookie.matchesHash(ctx, browser) ? cookie.secret(ctx) : undefined;
}

/** Removes the cookie of a request that does not wait any more. */
export function unbindBrowser(ctx: Context, uid: string): void {
  cookieOf(uid).clear(ctx);
}
