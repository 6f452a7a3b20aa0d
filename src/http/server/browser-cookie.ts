// Keeps a random secret in a browser's cookie, to which records can be bound; the server stores at most a hash of it.
// The `__Host-` prefix prevents other hosts, even siblings below the same domain, from setting the cookie (RFC
// 6265bis §4.1.3.2).
import type { Context } from 'koa';
import { isSameSecret, type Random, sha256 } from '../../runtime/secrets.ts';

/** 32 random bytes in base64url. */
const SECRET = /^[\w-]{43}$/;

interface BrowserCookieOptions {
  /** `none` where requests from other sites must carry the cookie, `lax` otherwise. */
  sameSite: 'lax' | 'none';
  /** How long the browser keeps the cookie, seconds. Without it, until the browser is closed. */
  ttlSeconds?: number;
}

interface BrowserCookie {
  /** Returns the secret that this response sets, or else the one that the request carried. */
  secret(ctx: Context): string | undefined;
  /**
   * Returns the secret of the browser, and sets a new one if there is none; within one request always the same. A
   * cookie with `ttlSeconds` is set again, so that its lifetime begins anew.
   */
  ensure(ctx: Context, random: Random): string;
  set(ctx: Context, secret: string): void;
  clear(ctx: Context): void;
  /** Reports in constant time whether the request carried this secret. */
  matches(ctx: Context, secret: string): boolean;
  /** Reports in constant time whether the request carried the secret with this hash ({@link sha256}). */
  matchesHash(ctx: Context, hash: string): boolean;
}

/** Returns a new secret: 32 random bytes in base64url. */
export function newBrowserSecret(random: Random): string {
  return random(32).toString('base64url');
}

export function browserCookie(
  name: `__Host-${string}`,
  { sameSite, ttlSeconds }: BrowserCookieOptions,
): BrowserCookie {
  const attributes = { httpOnly: true, secure: true, sameSite, path: '/' } as const;
  const newSecret = (ctx: Context) => ctx.state[name] as string | undefined;
  const sentSecret = (ctx: Context): string | undefined => {
    const value = ctx.cookies.get(name);
    return value !== undefined && SECRET.test(value) ? value : undefined;
  };
  const secret = (ctx: Context) => newSecret(ctx) ?? sentSecret(ctx);
  const set = (ctx: Context, value: string): void => {
    ctx.state[name] = value;
    ctx.cookies.set(name, value, {
      ...attributes,
      ...(ttlSeconds !== undefined && { maxAge: ttlSeconds * 1000 }),
    });
  };
  return {
    secret,
    ensure: (ctx, random) => {
      const known = secret(ctx);
      const value = known ?? newBrowserSecret(random);
      const isRenewed = ttlSeconds !== undefined && newSecret(ctx) === undefined;
      if (known === undefined || isRenewed) set(ctx, value);
      return value;
    },
    set,
    clear: (ctx) => {
      delete ctx.state[name];
      ctx.cookies.set(name, null, attributes);
    },
    matches: (ctx, value) => isSameSecret(sentSecret(ctx) ?? '', value) && value !== '',
    matchesHash: (ctx, hash) => {
      const value = sentSecret(ctx);
      return value !== undefined && isSameSecret(sha256(value), hash);
    },
  };
}

// Recognizes a browser by a random name in a cookie. The cookie proves nothing about its user; each caller decides
// how far to trust what it stored under the name.

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
