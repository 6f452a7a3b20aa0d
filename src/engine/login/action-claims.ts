// Filters the claims that actions set: claims that they may not set are left out and logged.
import type { ActionLogFields, Actions } from '../../capabilities/actions/actions.ts';
import type { AssertionChanges } from '../../capabilities/actions/assertion-methods.ts';
import type { Trigger } from '../../records/actions.ts';
import { type ClaimTarget, claimFault } from '../../records/custom-claims.ts';
import { withinLimit } from '../../users/profile.ts';

/** What actions add to the tokens of a login. */
export interface ActionClaims {
  idToken: Record<string, unknown>;
  accessToken: Record<string, unknown>;
  /** Changes of the access token's scope: true for a scope that is added, false for one that is removed. */
  scopes?: Record<string, boolean>;
  /** The scopes that the access token is to have, where actions have set them (`transaction.setTargetScopes`). */
  targetScopes?: readonly string[];
  assertion?: AssertionChanges;
}

/**
 * Returns the claims without those that belong to the protocol (or, in ID tokens, to the profile) and those that
 * exceed the size limit. Each that is left out is logged.
 */
export function allowedClaims(
  actions: Pick<Actions, 'recordRefusal'>,
  { trigger, to, about }: { trigger: Trigger; to: ClaimTarget; about: ActionLogFields },
  claims: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  const refuse = (reason: string) => actions.recordRefusal(trigger, `a claim: ${reason}`, about);
  const allowed = Object.entries(claims).filter(([claim]) => {
    const fault = claimFault(claim, [to]);
    if (fault !== undefined) refuse(fault);
    return fault === undefined;
  });
  return Object.fromEntries(withinLimit(allowed, (claim) => claim, refuse));
}
