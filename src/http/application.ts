// Creates the Koa application. Koa checks every object body with `instanceof Response`; the first such check makes
// Node.js load its fetch client, which takes 8 MB and 60 ms. JSON bodies are therefore kept away from that check.

import { createHash } from 'node:crypto';
import Koa, { type Context, type Middleware } from 'koa';
import type { Logger } from 'pino';

/** The Content-Type that Koa sets for JSON. */
const JSON_TYPE = 'application/json; charset=utf-8';

/** Creates a Koa application whose JSON bodies look as Koa sends them but do not load the fetch client. */
export function createApplication(log: Pick<Logger, 'warn'>): Koa {
  const app = new Koa();
  app.on('error', (error) => log.warn({ err: error }, 'a response could not be sent'));
  const koa = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(app.response), 'body');
  if (koa?.set === undefined) throw new Error('Koa sets bodies in another way');
  const { set } = koa;
  Object.defineProperty(app.response, 'body', {
    ...koa,
    set(this: Context['response'] & { _body: unknown }, body: unknown) {
      if (!isData(body)) return set.call(this, body);
      // Set first: otherwise Koa would look up the content type of a text, and then that of JSON.
      if (!/\bjson\b/i.test(this.type)) this.set('Content-Type', JSON_TYPE);
      // An empty text makes Koa set the status and dispose of a stream set before. The length is only known at the
      // end.
      set.call(this, '');
      this.remove('Content-Length');
      this._body = body;
    },
  });
  // The outermost middleware, so that the others may still change the body.
  app.use(async (ctx, next) => {
    await next();
    if (isData(ctx.body)) ctx.body = JSON.stringify(ctx.body);
  });
  return app;
}

/** Reports whether a body is an array or a plain object. */
function isData(body: unknown): boolean {
  if (typeof body !== 'object' || body === null) return false;
  if (Array.isArray(body)) return true;
  const prototype = Object.getPrototypeOf(body) as unknown;
  return prototype === Object.prototype || prototype === null;
}

// Sets the security headers of every response, and makes the content security policies of pages.

/** One year, in seconds. */
const HSTS_MAX_AGE = 31_536_000;

/** Content security policy of responses that are not pages. */
const DENY_ALL = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const PERMISSIONS = 'camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()';

// docs/decisions/requests.md#hsts-is-not-sent-on-localhost
/**
 * Sets security headers on every response; a handler may override them.
 * Cross-Origin-Opener-Policy is left out: it applies to redirects, too, and an application's login popup must keep
 * its opener throughout (response_mode `web_message`).
 * @param options.hsts whether to send HSTS (RFC 6797). HSTS covers all ports of a host: on `localhost` it would break
 * other applications under development.
 */
export function securityHeaders({ hsts }: { hsts: boolean }): Middleware {
  const headers: [name: string, value: string][] = [
    ['Content-Security-Policy', DENY_ALL],
    ['Cross-Origin-Resource-Policy', 'same-origin'],
    ['Permissions-Policy', PERMISSIONS],
    ['Referrer-Policy', 'no-referrer'],
    ['X-Content-Type-Options', 'nosniff'],
    ['X-Frame-Options', 'DENY'],
  ];
  if (hsts) headers.unshift(['Strict-Transport-Security', `max-age=${HSTS_MAX_AGE}`]);
  return ({ res }, next) => {
    // `ctx.set` would cost twice as much, and every response needs all of these.
    for (const [name, value] of headers) res.setHeader(name, value);
    return next();
  };
}

interface PagePolicy {
  /** Base64, new for each response. */
  nonce: string;
  // docs/decisions/login-pages.md#pages-whose-form-can-end-at-an-application-or-a-provider-have-no-form-action
  /**
   * Whether a form of the page may lead to an application or a provider. Chromium applies form-action to all redirects after a
   * post, also to those of the application, whose callback may send the browser on to any host or to a desktop application
   * (a private-use scheme): no list of sources contains where that ends, so such a page has no form-action.
   */
  formsLeave: boolean;
  /** The address of the page's font, when it is on another origin. */
  font?: string | undefined;
  /** Addresses of images on other origins; `any` when they are not known. */
  images: readonly string[] | 'any';
  /** Addresses on other origins that the page frames. */
  frames?: readonly string[];
  /** Whether the page calls or frames this server. */
  connects: boolean;
}

/** Returns the policy of a page: only scripts and styles with the nonce, and no framing. */
export function pagePolicy({ nonce, formsLeave, frames = [], images, font, connects }: PagePolicy): string {
  const framed = new Set([...(connects ? ["'self'"] : []), ...frames.map(cspSource)]);
  return [
    "default-src 'none'",
    `script-src 'nonce-${nonce}'`,
    `style-src 'nonce-${nonce}'`,
    `img-src ${["'self'", 'data:', ...imageSources(images)].join(' ')}`,
    ...(font === undefined ? [] : [`font-src ${cspSource(font)}`]),
    ...(connects ? ["connect-src 'self'", "manifest-src 'self'", "worker-src 'self'"] : []),
    ...(framed.size > 0 ? [`frame-src ${[...framed].join(' ')}`] : []),
    ...(formsLeave ? [] : ["form-action 'self'"]),
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
}

// docs/decisions/console-account.md#a-preview-of-a-hosted-page-is-the-page-itself-in-a-sandboxed-frame
/**
 * Returns the policy of a preview, a page shown in a frame of its own origin: it cannot run scripts, send forms or
 * open windows. The sandbox keeps its origin, without which browsers would not load this server's images.
 */
export function previewPolicy({
  nonce,
  images,
  font,
}: Pick<PagePolicy, 'nonce' | 'images' | 'font'>): string {
  return [
    "default-src 'none'",
    `style-src 'nonce-${nonce}'`,
    `img-src ${["'self'", 'data:', ...imageSources(images)].join(' ')}`,
    ...(font === undefined ? [] : [`font-src ${cspSource(font)}`]),
    "form-action 'none'",
    "base-uri 'none'",
    "frame-ancestors 'self'",
    'sandbox allow-same-origin',
  ].join('; ');
}

/** Only https addresses are kept: pages load no others. */
function imageSources(images: PagePolicy['images']): string[] {
  if (images === 'any') return ['https:'];
  const secure = images.filter((address) => URL.parse(address)?.protocol === 'https:');
  return [...new Set(secure.map(cspSource))];
}

// docs/decisions/login-pages.md#a-customized-login-page-runs-in-gatehouses-origin
/**
 * Returns the policy of a customized login page, whose form leads to the application. It allows scripts with the nonce, and loading from and calling this server
 * and the origins that the page names. Inline handlers and eval are forbidden, so that injected request values cannot
 * run.
 * @param sources the origins that the page names.
 */
export function customPagePolicy({
  nonce,
  sources,
}: Pick<PagePolicy, 'nonce'> & { sources: readonly string[] }): string {
  const allowed = ["'self'", ...new Set(sources)].join(' ');
  return [
    `default-src ${allowed} data:`,
    `script-src 'nonce-${nonce}' ${allowed}`,
    `style-src 'unsafe-inline' ${allowed}`,
    "object-src 'none'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
}

/**
 * Returns an address as a CSP source: its origin, or its scheme for a private-use scheme (`com.example.app:`) or an
 * IPv6 host, which the CSP grammar lacks. A host name may contain the characters that end a directive or a policy;
 * percent-encoded, they make a source that matches nothing.
 * @throws TypeError when it is not a URL.
 */
export function cspSource(address: string): string {
  const { origin, protocol, hostname } = new URL(address);
  if (origin === 'null' || hostname.startsWith('[')) return protocol;
  return origin.replaceAll(';', '%3B').replaceAll(',', '%2C');
}

/** Returns an inline script as a CSP source, by its hash (CSP Level 3 §2.3.1). */
export function cspHash(script: string): string {
  return `'sha256-${createHash('sha256').update(script).digest('base64')}'`;
}
