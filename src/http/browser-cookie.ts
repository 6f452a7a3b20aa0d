// A browser known again by a cookie that nobody else can set (`__Host-`, RFC 6265bis §4.1.3.2): for what comes back
// by way of other sites.
import type { Context } from 'koa';
import type { Random } from '../runtime/random.ts';
import { isSameSecret, sha256 } from '../runtime/secrets.ts';

const SECRET = /^[\w-]{43}$/;

export interface BrowserCookie {
  /** What is kept of this browser; it gets a cookie if it has none. One for all its tabs, until it is closed. */
  mark(ctx: Context, random: Random): string;
  /** Whether this browser is the one that {@link mark} was asked of. */
  isMarked(ctx: Context, mark: string): boolean;
}

/** The browsers by one cookie. */
export function browserCookie(name: `__Host-${string}`): BrowserCookie {
  const known = (ctx: Context) => {
    const secret = ctx.cookies.get(name);
    return secret !== undefined && SECRET.test(secret) ? secret : undefined;
  };
  return {
    mark: (ctx, random) => {
      const before = known(ctx);
      if (before !== undefined) return sha256(before);
      const secret = random(32).toString('base64url');
      // None: a service provider's post from its own site must bring it. What is not to be forged is a state or a
      // request's ID, which goes with it.
      ctx.cookies.set(name, secret, { httpOnly: true, secure: true, sameSite: 'none', path: '/' });
      return sha256(secret);
    },
    isMarked: (ctx, mark) => {
      const secret = known(ctx);
      return secret !== undefined && isSameSecret(sha256(secret), mark);
    },
  };
}
