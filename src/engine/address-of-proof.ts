// Which of our addresses a DPoP proof was made for (RFC 9449 §4.3): a tenant is served at its own origin and, by edges, at
// those of its custom domains. Which of them a request came by, an edge need not say.
import { decodeJwt } from 'jose';
import type { Context } from 'koa';

/**
 * The address that the `htu` of a request's proof has to be: at the custom origin that it names, if it names one.
 * @param address ours, at our own origin.
 */
export function atOriginOfProof(ctx: Context, customOrigins: readonly string[], address: string): string {
  const proof = customOrigins.length === 0 ? '' : ctx.get('DPoP');
  if (proof === '') return address;
  const named = customOrigins.find((origin) => origin === originOf(proof));
  return named === undefined ? address : `${named}${new URL(address).pathname}`;
}

/** Not verified: the proof has yet to be good for the address that comes of it. */
function originOf(proof: string): string | undefined {
  try {
    return URL.parse(String(decodeJwt(proof).htu))?.origin;
  } catch {
    return undefined;
  }
}
