// URL schemes that are never redirected to.

/** Schemes that run code, or read the browser's disk or memory. */
const FORBIDDEN = new Set(['javascript:', 'vbscript:', 'data:', 'blob:', 'file:', 'about:', 'view-source:']);

/** Whether an address has a scheme that must not be a callback or redirect target (RFC 9700 §4.11). */
export function hasForbiddenScheme({ protocol }: URL): boolean {
  return FORBIDDEN.has(protocol);
}
