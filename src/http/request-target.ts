// The request target (RFC 9112 §3.2): what is no path of ours is refused before anything reads it.
import type { Middleware } from 'koa';
import { AuthError, oauthShape } from './errors.ts';

/** A path and a query of visible characters: whatever reads them splits them at the same places. */
const ORIGIN_FORM = /^\/[^\s#\\]*$/;
const ABSOLUTE_FORM = /^https?:\/\/[^/?#\s\\]+(?=[/?]|$)/i;

/**
 * Takes targets in the origin form, and those in the absolute form as the path and query that they name; answers
 * 400 to others (the asterisk form, fragments, white space, what is no address).
 */
export function requestTarget(): Middleware {
  return (ctx, next) => {
    const { url = '' } = ctx.req;
    const target = originForm(url);
    if (target === undefined) {
      // Later handlers and the log read the address: they shall have one that can be read.
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
