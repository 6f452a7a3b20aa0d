// Which addresses may be redirected to at all.

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

/** Reports whether an address has a scheme that must not be a callback or redirect target (RFC 9700 §4.11). */
export function hasForbiddenScheme({ protocol }: URL): boolean {
  return FORBIDDEN.has(protocol);
}
