// Security headers: those that no answer is without, and the policy of pages.
import { createHash } from 'node:crypto';
import type { Middleware } from 'koa';

/** One year, in seconds. */
const HSTS_MAX_AGE = 31_536_000;

/** What answers that are no pages may load or be loaded into: nothing. Pages set their own. */
const CLOSED = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const PERMISSIONS = 'camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()';

/**
 * Sets the headers of every answer; a later handler may set its own instead.
 *
 * No Cross-Origin-Opener-Policy here: it would hold for redirects, too, and an application's login popup
 * must keep its opener on the whole way (response_mode `web_message`).
 * @param options.hsts whether browsers are told to use HTTPS for the host from now on (RFC 6797). They keep
 *   that for all its ports: on `localhost` it would take the applications under development with it.
 */
export function securityHeaders({ hsts }: { hsts: boolean }): Middleware {
  return async (ctx, next) => {
    if (hsts) ctx.set('Strict-Transport-Security', `max-age=${HSTS_MAX_AGE}`);
    ctx.set('Content-Security-Policy', CLOSED);
    ctx.set('Cross-Origin-Resource-Policy', 'same-origin');
    ctx.set('Permissions-Policy', PERMISSIONS);
    ctx.set('Referrer-Policy', 'no-referrer');
    ctx.set('X-Content-Type-Options', 'nosniff');
    ctx.set('X-Frame-Options', 'DENY');
    await next();
  };
}

/**
 * Where an application may send the browser on to from its callback: Chromium holds the whole chain of
 * redirects after a post to the form's rule, and would stop a login at its very last step.
 */
export const ONWARD = ['https:', 'http://localhost:*'] as const;

export interface PagePolicy {
  /** Of this answer alone; base64. */
  nonce: string;
  /**
   * Addresses that a form may lead to beside our own origin: Chromium holds the redirects after a post to
   * this rule, and a login ends at the application's callback.
   */
  formTargets: readonly string[];
  /** Addresses of others that the page frames. */
  frames?: readonly string[];
  /** Whether the page calls our own endpoints, or frames them. */
  connects: boolean;
}

/** The content security policy of a page: only what carries the nonce runs or styles, nothing frames it. */
export function pagePolicy({ nonce, formTargets, frames = [], connects }: PagePolicy): string {
  const targets = formTargets.length === 0 ? [] : [...new Set([...formTargets.map(cspSource), ...ONWARD])];
  const framed = new Set([...(connects ? ["'self'"] : []), ...frames.map(cspSource)]);
  return [
    "default-src 'none'",
    `script-src 'nonce-${nonce}'`,
    `style-src 'nonce-${nonce}'`,
    "img-src 'self' data: https:",
    ...(connects ? ["connect-src 'self'", "manifest-src 'self'", "worker-src 'self'"] : []),
    ...(framed.size > 0 ? [`frame-src ${[...framed].join(' ')}`] : []),
    `form-action ${["'self'", ...targets].join(' ')}`,
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
}

/**
 * The policy of a page that the operator wrote: its scripts run when they came with it, which the nonce tells, or from
 * our own origin and those that the page names; it may load from these and call them, and no others. Nothing that a
 * request puts into its elements runs: no handlers in attributes, no evaluated text.
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
 * An address as a source of a content security policy: its origin, or its scheme where it has a scheme of
 * its own (`com.example.app:`) or a host that the policy's grammar has no words for (an IPv6 address).
 * @throws TypeError when it is no URL.
 */
export function cspSource(address: string): string {
  const { origin, protocol, hostname } = new URL(address);
  return origin === 'null' || hostname.startsWith('[') ? protocol : origin;
}

/** A script in the page as a source of its content security policy, by its hash (CSP Level 3 §2.3.1). */
export function cspHash(script: string): string {
  return `'sha256-${createHash('sha256').update(script).digest('base64')}'`;
}
