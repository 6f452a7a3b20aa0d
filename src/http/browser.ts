// Recognizes a browser by a random name in a cookie. The cookie proves nothing about its user; each caller decides
// how far to trust what it stored under the name.
import type { Context } from 'koa';
import type { Random } from '../runtime/random.ts';
import { sha256 } from '../runtime/secrets.ts';
import { browserCookie } from './browser-cookie.ts';

/**
 * SameSite=None, because applications call and frame this server from their own sites. Lasts 90 days from its last
 * use.
 */
const BROWSER_COOKIE = browserCookie('__Host-gatehouse_browser', {
  sameSite: 'none',
  ttlSeconds: 90 * 86_400,
});

/** Returns the SHA-256 of the name of the browser that sent a request; undefined when it has no name yet. */
export function browserOf(ctx: Context): string | undefined {
  const name = BROWSER_COOKIE.secret(ctx);
  return name === undefined ? undefined : sha256(name);
}

/** A browser that has a name, or is given one with this response. */
export interface NamedBrowser {
  /** SHA-256 of its name. */
  browser: string;
  /** Whether the name is set by this very response. The browser may refuse the cookie. */
  isNewBrowser: boolean;
}

/**
 * Names the browser that sent a request. To be called only for requests made by a page of this server or of the
 * application: any other page can make the browser send a request, too.
 */
export function nameBrowser(ctx: Context, random: Random): NamedBrowser {
  const name = BROWSER_COOKIE.ensure(ctx, random);
  return { browser: sha256(name), isNewBrowser: !BROWSER_COOKIE.matches(ctx, name) };
}
