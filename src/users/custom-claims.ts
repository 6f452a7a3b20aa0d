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
