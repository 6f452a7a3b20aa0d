// Checks the request target (RFC 9112 §3.2) before anything else reads it.
import type { Middleware } from 'koa';
import { AuthError, oauthShape } from './errors.ts';

/** A path and query of visible characters, which every parser splits in the same way. */
const ORIGIN_FORM = /^\/[^\s#\\]*$/;
const ABSOLUTE_FORM = /^https?:\/\/[^/?#\s\\]+(?=[/?]|$)/i;

/**
 * Accepts the origin form, and reduces the absolute form to its path and query. Answers 400 to others (asterisk form,
 * fragments, white space).
 */
export function requestTarget(): Middleware {
  return (ctx, next) => {
    const { url = '' } = ctx.req;
    const target = originForm(url);
    if (target === undefined) {
      // Later handlers and the log parse the address.
      ctx.req.url = '/';
      return oauthShape(ctx, new AuthError(400, 'invalid_request', 'The request target is no path.'));
    }
    if (target !== url) ctx.req.url = target;
    return next();
  };
}

function originForm(url: string): string | undefined {
  if (ORIGIN_FORM.test(url)) return url;
  const authority = ABSOLUTE_FORM.exec(url)?.[0];
  if (authority === undefined || !URL.canParse(authority)) return undefined;
  const rest = url.slice(authority.length);
  const target = rest.startsWith('/') ? rest : `/${rest}`;
  return ORIGIN_FORM.test(target) ? target : undefined;
}
