// Checks the request target and the Host (RFC 9112 §3.2) before anything else reads them.
import type { IncomingMessage } from 'node:http';
import type { Middleware } from 'koa';
import { AuthError, oauthShape } from './errors.ts';
import { normalHost } from './request-host.ts';

/** A path and query of visible characters, which every parser splits in the same way. */
const ORIGIN_FORM = /^\/[^\s#\\]*$/;
const ABSOLUTE_FORM = /^https?:\/\/([^/?#\s\\]+)(?=[/?]|$)/i;

/**
 * Accepts the origin form, and reduces the absolute form to its path and query. Answers 400 to others (asterisk form,
 * fragments, white space), and to a request that does not name one host: an invalid Host, two of them, or one that is not
 * that of the target. Proxies would choose otherwise than we do.
 */
export function requestTarget(): Middleware {
  return (ctx, next) => {
    const { req } = ctx;
    const target = readTarget(req.url ?? '');
    const host = readHost(req);
    const isOneHost = host !== INVALID && (target?.host === undefined || target.host === host);
    if (target === undefined || !isOneHost) {
      // Later handlers and the log parse the address.
      req.url = '/';
      const what =
        target === undefined ? 'The request target is no path.' : 'The request names no host, or two.';
      return oauthShape(ctx, new AuthError(400, 'invalid_request', what));
    }
    if (target.path !== req.url) req.url = target.path;
    if (host !== req.headers.host) req.headers.host = host;
    return next();
  };
}

interface Target {
  path: string;
  /** Of the absolute form. */
  host?: string;
}

function readTarget(url: string): Target | undefined {
  if (ORIGIN_FORM.test(url)) return { path: url };
  const [start, authority = ''] = ABSOLUTE_FORM.exec(url) ?? [];
  const host = normalHost(authority);
  if (start === undefined || host === undefined) return undefined;
  const rest = url.slice(start.length);
  const path = rest.startsWith('/') ? rest : `/${rest}`;
  return ORIGIN_FORM.test(path) ? { path, host } : undefined;
}

const INVALID = Symbol('an invalid Host');

/** Returns the host; undefined where there is none, as HTTP/1.0 allows. Node.js keeps the first of several in `headers`. */
function readHost({ headers, rawHeaders }: IncomingMessage): string | undefined | typeof INVALID {
  let lines = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] ?? '';
    if (name.length === 4 && name.toLowerCase() === 'host') lines++;
  }
  if (lines > 1) return INVALID;
  return headers.host === undefined ? undefined : (normalHost(headers.host) ?? INVALID);
}
