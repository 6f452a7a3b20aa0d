// Finds the origin that a DPoP proof was made for (RFC 9449 §4.3). A tenant is served at its own origin and,
// through reverse proxies, at those of its custom domains. A proxy need not say which of them a request came to.
import type { Context } from 'koa';
import { unverifiedClaims } from '../../capabilities/signing/verify-jwt.ts';

/**
 * Returns the URL that `htu` of a request's proof has to match: at the custom origin that the proof names, if it
 * names one, and otherwise ours.
 * @param address the URL of the endpoint at our own origin.
 */
export function urlAtProofOrigin(ctx: Context, customOrigins: readonly string[], address: string): string {
  const proof = customOrigins.length === 0 ? '' : ctx.get('DPoP');
  if (proof === '') return address;
  const proofOrigin = customOrigins.find((origin) => origin === originOf(proof));
  return proofOrigin === undefined ? address : `${proofOrigin}${new URL(address).pathname}`;
}

/**
 * Reads the origin of `htu` without verifying the proof; the engine then verifies the proof against the resulting
 * URL.
 */
function originOf(proof: string): string | undefined {
  try {
    return URL.parse(String(unverifiedClaims(proof).htu))?.origin;
  } catch {
    return undefined;
  }
}
