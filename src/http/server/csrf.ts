// Protects forms against cross-site request forgery: a token in the form must equal a cookie that only this server
// sets (double submit), and `Sec-Fetch-Site` and `Origin` must not name another site.
import type { Context } from 'koa';
import type { Random } from '../../runtime/secrets.ts';
import { AuthError } from '../errors.ts';
import { formFields } from './body.ts';
import { browserCookie } from './browser-cookie.ts';

/** One token for all tabs of a browser, until it is closed. */
const TOKEN_COOKIE = browserCookie('__Host-gatehouse_csrf', { sameSite: 'lax' });

export interface Csrf {
  /** Returns the token for the form field `_csrf`. */
  token(ctx: Context): string;
  /**
   * Verifies that a post comes from a page of this server in this browser.
   * @param sent the token, when it is not in the body's `_csrf`.
   * @throws AuthError 403 `invalid_request` with the reason `form_expired` when it does not.
   */
  verify(ctx: Context, sent?: unknown): void;
}

/** @param baseUrl the public URL of this server. */
export function createCsrf(baseUrl: string, random: Random): Csrf {
  const { origin } = new URL(baseUrl);
  return {
    token: (ctx) => TOKEN_COOKIE.ensure(ctx, random),
    verify: (ctx, sent = formFields(ctx, '_csrf')._csrf) => {
      if (typeof sent === 'string' && isSameOrigin(ctx, origin) && TOKEN_COOKIE.matches(ctx, sent)) return;
      throw new AuthError(
        403,
        'invalid_request',
        'This form has expired. Go back, reload the page and try again.',
        { extra: { reason: 'form_expired' } },
      );
    },
  };
}

/** Reports whether no header of the request says that another site sent it (Fetch Metadata §2.3; RFC 6454 §7). */
export function isSameOrigin(ctx: Context, origin: string): boolean {
  const site = ctx.get('Sec-Fetch-Site');
  const from = ctx.get('Origin');
  return (site === '' || site === 'same-origin' || site === 'none') && (from === '' || from === origin);
}
