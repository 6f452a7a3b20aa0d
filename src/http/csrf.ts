// Forms come from our own pages: a token in the form must match a cookie that only we can set.
import { timingSafeEqual } from 'node:crypto';
import type { Context } from 'koa';
import { AuthError } from './errors.ts';
import type { Random } from './runtime.ts';

export interface Csrf {
  /** The token for a form; the browser keeps one, so that two open pages both work. */
  token(ctx: Context): string;
  /** @throws AuthError 403 when the form did not come from one of our pages in this browser. */
  verify(ctx: Context): void;
}

/** `__Host-`: no other host, not even a sub-domain, can plant it. */
const COOKIE = '__Host-gatehouse_csrf';
const TOKEN = /^[\w-]{43}$/;
const EXPIRED = 'This form has expired. Go back, reload the page and try again.';

/** @param origin our own origin, for the browser's word on where a post came from. */
export function createCsrf(origin: string, random: Random): Csrf {
  return {
    token: (ctx) => {
      const known = ctx.cookies.get(COOKIE);
      if (known !== undefined && TOKEN.test(known)) return known;
      const token = random(32).toString('base64url');
      ctx.cookies.set(COOKIE, token, { httpOnly: true, secure: true, sameSite: 'lax', path: '/' });
      return token;
    },
    verify: (ctx) => {
      const { body } = ctx.request as { body?: { _csrf?: unknown } };
      const sent = body?._csrf;
      const kept = ctx.cookies.get(COOKIE);
      const foreign =
        ctx.get('Sec-Fetch-Site') === 'cross-site' ||
        (ctx.get('Origin') !== '' && ctx.get('Origin') !== origin);
      if (foreign || typeof sent !== 'string' || kept === undefined || !equal(sent, kept)) {
        throw new AuthError(403, 'invalid_request', EXPIRED);
      }
    },
  };
}

function equal(a: string, b: string): boolean {
  const [x, y] = [Buffer.from(a), Buffer.from(b)];
  return x.length === y.length && timingSafeEqual(x, y);
}
