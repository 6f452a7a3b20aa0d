// Where no browser is ever sent, whoever asks for it.

/** Schemes that a browser runs, or reads from its own disk or memory. */
const FORBIDDEN = new Set(['javascript:', 'vbscript:', 'data:', 'blob:', 'file:', 'about:', 'view-source:']);

/** Whether an address has a scheme that may be no callback and no target of a redirect (RFC 9700 §4.11). */
export function hasForbiddenScheme({ protocol }: URL): boolean {
  return FORBIDDEN.has(protocol);
}
