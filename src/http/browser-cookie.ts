// A secret that one browser keeps in a cookie: what is bound to the browser is bound to the secret, of which no more
// than a hash is kept. `__Host-`: no other host, not even a sibling below the same domain, can plant the cookie
// (RFC 6265bis §4.1.3.2).
import type { Context } from 'koa';
import type { Random } from '../runtime/random.ts';
import { isSameSecret, sha256 } from '../runtime/secrets.ts';

/** 32 random bytes in base64url. */
const SECRET = /^[\w-]{43}$/;

interface BrowserCookieOptions {
  /** `none` where requests from other sites must bring it, `lax` otherwise. */
  sameSite: 'lax' | 'none';
  /** How long the browser keeps it, seconds; until it is closed by default. */
  ttlSeconds?: number;
}

interface BrowserCookie {
  /** The secret that the browser has, or gets with this very answer. */
  secret(ctx: Context): string | undefined;
  /**
   * The same; a browser that has none gets one, the same for one answer however often it is asked for. A cookie with a
   * lifetime lives that long from now.
   */
  keep(ctx: Context, random: Random): string;
  /** Gives the browser a secret in place of the one that it has. */
  give(ctx: Context, secret: string): void;
  /** Has the browser forget its secret. */
  forget(ctx: Context): void;
  /** Whether the request brought this very secret; in constant time. */
  brings(ctx: Context, secret: string): boolean;
  /** Whether the request brought the secret with this hash ({@link sha256}); in constant time. */
  bringsHashed(ctx: Context, hash: string): boolean;
}

/** A new secret for a browser. */
export function newBrowserSecret(random: Random): string {
  return random(32).toString('base64url');
}

/** The secrets in one cookie. */
export function browserCookie(
  name: `__Host-${string}`,
  { sameSite, ttlSeconds }: BrowserCookieOptions,
): BrowserCookie {
  const attributes = { httpOnly: true, secure: true, sameSite, path: '/' } as const;
  const given = (ctx: Context) => ctx.state[name] as string | undefined;
  const sent = (ctx: Context): string | undefined => {
    const value = ctx.cookies.get(name);
    return value !== undefined && SECRET.test(value) ? value : undefined;
  };
  const secret = (ctx: Context) => given(ctx) ?? sent(ctx);
  const give = (ctx: Context, value: string): void => {
    ctx.state[name] = value;
    ctx.cookies.set(name, value, {
      ...attributes,
      ...(ttlSeconds !== undefined && { maxAge: ttlSeconds * 1000 }),
    });
  };
  return {
    secret,
    keep: (ctx, random) => {
      const known = secret(ctx);
      const value = known ?? newBrowserSecret(random);
      const isRenewed = ttlSeconds !== undefined && given(ctx) === undefined;
      if (known === undefined || isRenewed) give(ctx, value);
      return value;
    },
    give,
    forget: (ctx) => {
      delete ctx.state[name];
      ctx.cookies.set(name, null, attributes);
    },
    brings: (ctx, value) => isSameSecret(sent(ctx) ?? '', value) && value !== '',
    bringsHashed: (ctx, hash) => {
      const value = sent(ctx);
      return value !== undefined && isSameSecret(sha256(value), hash);
    },
  };
}
