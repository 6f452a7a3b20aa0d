// Forms come from our own pages: a token in the form must match a cookie that only our pages have
// (double submit), and the browser's own word on where the post came from must not speak against it.
import type { Context } from 'koa';
import type { Random } from '../runtime/random.ts';
import { isSameSecret } from '../runtime/secrets.ts';
import { formFields } from './body-fields.ts';
import { AuthError } from './errors.ts';

/** `__Host-`: no other host, not even a sibling below the same domain, can plant it (RFC 6265bis §4.1.3.2). */
const COOKIE = '__Host-gatehouse_csrf';
const TOKEN_BYTES = 32;
const TOKEN = /^[\w-]{43}$/;

export interface Csrf {
  /** The token for a form's `_csrf`. A browser keeps one for all its tabs, until it is closed. */
  token(ctx: Context): string;
  /**
   * @param sent the token, where it is not the body's `_csrf`.
   * @throws AuthError 403 `invalid_request`, reason `form_expired`, when a post is not from our page in this browser.
   */
  verify(ctx: Context, sent?: unknown): void;
}

/** @param baseUrl our public origin. */
export function createCsrf(baseUrl: string, random: Random): Csrf {
  const { origin } = new URL(baseUrl);
  /** Tokens of this very answer: a page with two forms has one. */
  const issued = new WeakMap<Context, string>();
  return {
    token: (ctx) => {
      const known = keptToken(ctx) ?? issued.get(ctx);
      if (known !== undefined) return known;
      const token = random(TOKEN_BYTES).toString('base64url');
      ctx.cookies.set(COOKIE, token, {
        httpOnly: true,
        secure: true,
        sameSite: 'lax',
        path: '/',
      });
      issued.set(ctx, token);
      return token;
    },
    verify: (ctx, sent = formFields(ctx, '_csrf')._csrf) => {
      const kept = keptToken(ctx);
      if (kept !== undefined && isOurs(ctx, origin) && isSame(sent, kept)) return;
      throw new AuthError(
        403,
        'invalid_request',
        'This form has expired. Go back, reload the page and try again.',
        { extra: { reason: 'form_expired' } },
      );
    },
  };
}

function keptToken(ctx: Context): string | undefined {
  const kept = ctx.cookies.get(COOKIE);
  return kept !== undefined && TOKEN.test(kept) ? kept : undefined;
}

/** Whether nothing in the request says that another site sent it (Fetch Metadata §2.3; RFC 6454 §7). */
function isOurs(ctx: Context, origin: string): boolean {
  const site = ctx.get('Sec-Fetch-Site');
  const from = ctx.get('Origin');
  return (site === '' || site === 'same-origin' || site === 'none') && (from === '' || from === origin);
}

function isSame(sent: unknown, kept: string): boolean {
  return typeof sent === 'string' && isSameSecret(sent, kept);
}
