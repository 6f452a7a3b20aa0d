// Security headers: those of every answer, and the stricter ones of pages.
import type { Middleware } from 'koa';

/**
 * Headers that no answer is without; pages add their own.
 * @param options.hsts whether browsers are told to use HTTPS for the host from now on. They keep that for all
 *   its ports: on `localhost` it would take the applications under development with it.
 */
export function securityHeaders({ hsts }: { hsts: boolean }): Middleware {
  return async (ctx, next) => {
    if (hsts) ctx.set('Strict-Transport-Security', 'max-age=31536000');
    ctx.set('X-Content-Type-Options', 'nosniff');
    // Not `no-referrer`: browsers then send `Origin: null` with our own forms, which csrf.ts refuses.
    ctx.set('Referrer-Policy', 'same-origin');
    ctx.set('X-Frame-Options', 'DENY');
    ctx.set(
      'Content-Security-Policy',
      "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    );
    await next();
  };
}

/**
 * A page's content security policy.
 * @param nonce what its one inline style carries.
 * @param formAction where its forms may lead, beside our own origin: browsers apply the rule to the
 *   redirects after a post, and a login ends at the application.
 */
export function pagePolicy(nonce: string, formAction: readonly string[]): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    `style-src 'self' 'nonce-${nonce}'`,
    "img-src 'self' data: https:",
    `form-action ${["'self'", ...formAction].join(' ')}`,
    "connect-src 'self'",
    "frame-ancestors 'none'",
    "base-uri 'none'",
  ].join('; ');
}
