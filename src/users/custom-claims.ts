// The values of claims that a tenant declares, from what is current.
import { type ClaimTarget, type CustomClaim, claimPath } from '../records/custom-claims.ts';
import type { Frozen } from '../records/record.ts';

/** What the values come from. */
export interface ClaimSources {
  user?: object | undefined;
  client?: object | undefined;
  organization?: object | undefined;
  connection?: object | undefined;
}

/** Where claims are wanted. */
export interface ClaimsWanted {
  to: ClaimTarget;
  clientId: string;
  /** Of an access token. */
  audience?: string | undefined;
}

/** The declared claims that belong to a place. */
export function claimsWanted(
  declared: Frozen<CustomClaim[]>,
  { to, clientId, audience }: ClaimsWanted,
): Frozen<CustomClaim[]> {
  return declared.filter(
    (claim) =>
      claim.to.includes(to) &&
      (claim.clients?.includes(clientId) ?? true) &&
      (audience === undefined || (claim.audiences?.includes(audience) ?? true)),
  );
}

/** The value that a claim has of some sources; undefined where there is none. */
export function claimValue({ value }: Frozen<CustomClaim>, sources: ClaimSources): unknown {
  let found: unknown = sources;
  for (const member of claimPath(value) ?? []) {
    if (typeof found !== 'object' || found === null || !Object.hasOwn(found, member)) return undefined;
    found = (found as Record<string, unknown>)[member];
  }
  return found ?? undefined;
}

/** Characters that the claims of one place have together as JSON, those declared and those of actions each: tokens go through redirects. */
const MOST_CLAIMED = 100_000;

/**
 * Those that there is room for, in their order; one that is too large keeps no later one out.
 * @param leftOut is called with each of the others, in words.
 */
export function fitting<T>(
  all: readonly T[],
  claimOf: (one: T) => readonly [name: string, value: unknown],
  leftOut: (what: string) => void,
): T[] {
  let length = 0;
  return all.filter((one) => {
    const claim = claimOf(one);
    const more = JSON.stringify(claim).length;
    if (length + more > MOST_CLAIMED) {
      leftOut(`${claim[0]} would make more than ${MOST_CLAIMED} characters of claims`);
      return false;
    }
    length += more;
    return true;
  });
}
