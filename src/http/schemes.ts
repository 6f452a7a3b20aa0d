// Which addresses are redirected to: URL schemes that never are, and an application's callbacks.

/** Schemes that run code, or read the browser's disk or memory. */
const FORBIDDEN = new Set(['javascript:', 'vbscript:', 'data:', 'blob:', 'file:', 'about:', 'view-source:']);

/**
 * Reports whether a text may be a callback: an absolute URI without a fragment (RFC 6749 §3.1.2) whose scheme does
 * not run code.
 */
export function isCallback(text: string): boolean {
  const url = URL.parse(text);
  return url !== null && !text.includes('#') && !hasForbiddenScheme(url);
}

// docs/understand/decisions/sessions-logout.md#allowed_logout_urls-of-native-applications-are-compared-as-their-callbacks
/** A loopback address with plain http as it is written in a URL; `localhost` is none, because it may resolve to another host. */
const LOOPBACK = /^(http:\/\/(?:127\.0\.0\.1|\[::1\]))(?::\d{1,5})?(?=[/?]|$)/;

// docs/understand/decisions/authorize.md#callback-urls-are-compared-as-exact-strings
/**
 * Whether an address is one of an application's callbacks. They are compared as text. A native application listens on a port
 * that the system gives it, so there the port of a loopback address may differ (RFC 8252 §7.3).
 */
export function isCallbackOf(
  { callbacks, app_type }: { callbacks: readonly string[]; app_type?: string | undefined },
  address: string,
): boolean {
  if (callbacks.includes(address)) return true;
  if (app_type !== 'native' || !LOOPBACK.test(address) || !isCallback(address)) return false;
  const withoutPort = (text: string) => text.replace(LOOPBACK, '$1');
  return callbacks.some((one) => LOOPBACK.test(one) && withoutPort(one) === withoutPort(address));
}

/** Reports whether an address has a scheme that must not be a callback or redirect target (RFC 9700 §4.11). */
export function hasForbiddenScheme({ protocol }: URL): boolean {
  return FORBIDDEN.has(protocol);
}
