// The same browser again: a random name that it keeps in a cookie of ours. The cookie proves nothing by itself;
// whoever files something under the name decides what it is worth.
import type { Context } from 'koa';
import type { Random } from '../runtime/random.ts';
import { sha256 } from '../runtime/secrets.ts';

/** `__Host-`: no other host can plant it. `None`: applications call and frame us from their own sites. */
const COOKIE = '__Host-gatehouse_browser';
const NAME = /^[\w-]{43}$/;
const LIFETIME_SECONDS = 90 * 86_400;

/**
 * The browser that sent a request, as SHA-256 of its name.
 * @returns undefined when it has no name yet.
 */
export function browserOf(ctx: Context): string | undefined {
  const name = nameOf(ctx);
  return name === undefined ? undefined : sha256(name);
}

/** A browser that has a name, or gets one with the answer. */
export interface NamedBrowser {
  /** SHA-256 of its name. */
  browser: string;
  /** Whether it gets its name with this very answer: it may not keep it. */
  isNewBrowser: boolean;
}

/**
 * Names the browser that sent a request. To be called only where a page of ours, or of the application, made the
 * request: any page can make the browser send one.
 */
export function markBrowser(ctx: Context, random: Random): NamedBrowser {
  const isNewBrowser = !isName(ctx.cookies.get(COOKIE));
  const name = nameOf(ctx) ?? random(32).toString('base64url');
  // One name for one answer, however often it is asked for.
  if (ctx.state.browser !== name) {
    ctx.state.browser = name;
    ctx.cookies.set(COOKIE, name, {
      httpOnly: true,
      secure: true,
      sameSite: 'none',
      path: '/',
      maxAge: LIFETIME_SECONDS * 1000,
    });
  }
  return { browser: sha256(name), isNewBrowser };
}

function nameOf(ctx: Context): string | undefined {
  const name: unknown = ctx.state.browser ?? ctx.cookies.get(COOKIE);
  return isName(name) ? name : undefined;
}

function isName(name: unknown): name is string {
  return typeof name === 'string' && NAME.test(name);
}
