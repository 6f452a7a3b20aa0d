// Security headers of every answer, and content security policies of pages.
import { createHash } from 'node:crypto';
import type { Middleware } from 'koa';

/** One year, in seconds. */
const HSTS_MAX_AGE = 31_536_000;

/** Content security policy of answers that are not pages. */
const CLOSED = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const PERMISSIONS = 'camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()';

/**
 * Sets the headers of every answer; a handler may override them.
 *
 * No Cross-Origin-Opener-Policy here: it applies to redirects, too, and an application's login popup must keep its
 * opener throughout (response_mode `web_message`).
 * @param options.hsts whether to send HSTS (RFC 6797). It covers all ports of a host: on `localhost` it would break
 *   other applications under development.
 */
export function securityHeaders({ hsts }: { hsts: boolean }): Middleware {
  const headers: [name: string, value: string][] = [
    ['Content-Security-Policy', CLOSED],
    ['Cross-Origin-Resource-Policy', 'same-origin'],
    ['Permissions-Policy', PERMISSIONS],
    ['Referrer-Policy', 'no-referrer'],
    ['X-Content-Type-Options', 'nosniff'],
    ['X-Frame-Options', 'DENY'],
  ];
  if (hsts) headers.unshift(['Strict-Transport-Security', `max-age=${HSTS_MAX_AGE}`]);
  return ({ res }, next) => {
    // Past Koa's own method, which costs twice as much: every answer has them.
    for (const [name, value] of headers) res.setHeader(name, value);
    return next();
  };
}

/**
 * Where an application's callback may redirect: Chromium applies form-action to all redirects after a post and would
 * block a login at its last step.
 */
export const ONWARD = ['https:', 'http://localhost:*'] as const;

interface PagePolicy {
  /** Fresh for each answer; base64. */
  nonce: string;
  /**
   * Where a form may lead besides our own origin: Chromium applies form-action to redirects after a post, and a login ends
   * at the application's callback.
   */
  formTargets: readonly string[];
  /** The origin of the page's font, where it is foreign. */
  font?: string | undefined;
  /** Foreign addresses of the images on the page; `any` where they are not known. */
  images: readonly string[] | 'any';
  /** Foreign addresses that the page frames. */
  frames?: readonly string[];
  /** Whether the page calls our own endpoints, or frames them. */
  connects: boolean;
}

/** The policy of a page: only scripts and styles with the nonce, no framing. */
export function pagePolicy({ nonce, formTargets, frames = [], images, font, connects }: PagePolicy): string {
  const targets = formTargets.length === 0 ? [] : [...new Set([...formTargets.map(cspSource), ...ONWARD])];
  const framed = new Set([...(connects ? ["'self'"] : []), ...frames.map(cspSource)]);
  return [
    "default-src 'none'",
    `script-src 'nonce-${nonce}'`,
    `style-src 'nonce-${nonce}'`,
    `img-src ${["'self'", 'data:', ...imageSources(images)].join(' ')}`,
    ...(font === undefined ? [] : [`font-src ${cspSource(font)}`]),
    ...(connects ? ["connect-src 'self'", "manifest-src 'self'", "worker-src 'self'"] : []),
    ...(framed.size > 0 ? [`frame-src ${[...framed].join(' ')}`] : []),
    `form-action ${["'self'", ...targets].join(' ')}`,
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
}

/**
 * The policy of a page that is only looked at, in a frame of its own origin: it runs nothing, sends nothing, and opens nothing.
 * The sandbox keeps its origin, without which browsers would load no image of ours.
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

/** Of secure addresses alone: a page of ours loads no others. */
function imageSources(images: PagePolicy['images']): string[] {
  if (images === 'any') return ['https:'];
  const secure = images.filter((address) => URL.parse(address)?.protocol === 'https:');
  return [...new Set(secure.map(cspSource))];
}

/**
 * The policy of a customized page: scripts with the nonce, from our own origin and from those that the page names; it
 * may load from and call these only. No inline handlers and no eval, so that injected request values cannot run.
 * @param sources origins that the page names.
 */
export function customPagePolicy({
  nonce,
  formTargets,
  sources,
}: Pick<PagePolicy, 'nonce' | 'formTargets'> & { sources: readonly string[] }): string {
  const known = ["'self'", ...new Set(sources)].join(' ');
  return [
    `default-src ${known} data:`,
    `script-src 'nonce-${nonce}' ${known}`,
    `style-src 'unsafe-inline' ${known}`,
    `form-action ${["'self'", ...new Set([...formTargets.map(cspSource), ...ONWARD])].join(' ')}`,
    "object-src 'none'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
}

/**
 * An address as a CSP source: its origin, or its scheme for a private-use scheme (`com.example.app:`) or an IPv6 host,
 * which CSP's grammar lacks. The signs that end a directive or a policy may be in a host name: encoded, they are of a
 * source that matches nothing.
 * @throws TypeError when it is no URL.
 */
export function cspSource(address: string): string {
  const { origin, protocol, hostname } = new URL(address);
  if (origin === 'null' || hostname.startsWith('[')) return protocol;
  return origin.replaceAll(';', '%3B').replaceAll(',', '%2C');
}

/** A script in the page as a source of its content security policy, by its hash (CSP Level 3 §2.3.1). */
export function cspHash(script: string): string {
  return `'sha256-${createHash('sha256').update(script).digest('base64')}'`;
}
