// The values of the claims that a tenant declares, computed when a token is issued.
import { type ClaimTarget, type CustomClaim, claimPath } from '../records/custom-claims.ts';
import type { Frozen } from '../records/record.ts';

/** The objects that claims take their values from. */
export interface ClaimSources {
  user?: object | undefined;
  client?: object | undefined;
  organization?: object | undefined;
  connection?: object | undefined;
}

/** The token or response that claims are for. */
export interface ClaimsContext {
  to: ClaimTarget;
  clientId: string;
  /** The audience of an access token. */
  audience?: string | undefined;
}

/** Returns the declared claims that belong into a token or response. */
export function claimsFor(
  declared: Frozen<CustomClaim[]>,
  { to, clientId, audience }: ClaimsContext,
): Frozen<CustomClaim[]> {
  return declared.filter(
    (claim) =>
      claim.to.includes(to) &&
      (claim.clients?.includes(clientId) ?? true) &&
      (audience === undefined || (claim.audiences?.includes(audience) ?? true)),
  );
}

/** Returns the value of a claim; undefined if the sources do not have it. */
export function claimValue({ value }: Frozen<CustomClaim>, sources: ClaimSources): unknown {
  let found: unknown = sources;
  for (const member of claimPath(value) ?? []) {
    if (typeof found !== 'object' || found === null || !Object.hasOwn(found, member)) return undefined;
    found = (found as Record<string, unknown>)[member];
  }
  return found ?? undefined;
}

/**
 * The most characters, as JSON, of all declared claims of a token, and of all claims that actions set. Tokens are sent in
 * redirects, so their length must be limited.
 */
const MAX_CLAIMS_LENGTH = 100_000;

/**
 * Returns the claims that fit together into MAX_CLAIMS_LENGTH characters, in their order. A claim that is too large is skipped.
 * @param onOmitted is called for each skipped claim, with an English description.
 */
export function withinLimit<T>(
  all: readonly T[],
  claimOf: (one: T) => readonly [name: string, value: unknown],
  onOmitted: (what: string) => void,
): T[] {
  let length = 0;
  return all.filter((one) => {
    const claim = claimOf(one);
    const added = JSON.stringify(claim).length;
    if (length + added > MAX_CLAIMS_LENGTH) {
      onOmitted(`${claim[0]} would make more than ${MAX_CLAIMS_LENGTH} characters of claims`);
      return false;
    }
    length += added;
    return true;
  });
}
