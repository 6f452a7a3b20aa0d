// Forms come from our own pages: a token in the form must match a cookie that only our pages have
// (double submit), and the browser's own word on where the post came from must not speak against it.
import type { Context } from 'koa';
import type { Random } from '../runtime/random.ts';
import { formFields } from './body-fields.ts';
import { browserCookie } from './browser-cookie.ts';
import { AuthError } from './errors.ts';

/** One for all tabs of a browser, until it is closed. */
const TOKEN = browserCookie('__Host-gatehouse_csrf', { sameSite: 'lax' });

export interface Csrf {
  /** The token for a form's `_csrf`. */
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
  return {
    token: (ctx) => TOKEN.keep(ctx, random),
    verify: (ctx, sent = formFields(ctx, '_csrf')._csrf) => {
      if (typeof sent === 'string' && isOurs(ctx, origin) && TOKEN.brings(ctx, sent)) return;
      throw new AuthError(
        403,
        'invalid_request',
        'This form has expired. Go back, reload the page and try again.',
        { extra: { reason: 'form_expired' } },
      );
    },
  };
}

/** Whether nothing in the request says that another site sent it (Fetch Metadata §2.3; RFC 6454 §7). */
export function isOurs(ctx: Context, origin: string): boolean {
  const site = ctx.get('Sec-Fetch-Site');
  const from = ctx.get('Origin');
  return (site === '' || site === 'same-origin' || site === 'none') && (from === '' || from === origin);
}
