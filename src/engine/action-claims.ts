// Claims that actions set: those that may be set, and the rest is refused and logged.
import type { Actions, ActionsAbout } from '../actions/actions.ts';
import type { AssertionAsked } from '../actions/assertion-asked.ts';
import type { Trigger } from '../records/actions.ts';
import { type ClaimTarget, claimFault } from '../records/custom-claims.ts';
import { fitting } from '../users/custom-claims.ts';

/** What actions gave the tokens of a login. */
export interface ActionClaims {
  idToken: Record<string, unknown>;
  accessToken: Record<string, unknown>;
  /** Of the access token: true for one that is added, false for one that is taken away. */
  scopes?: Record<string, boolean>;
  assertion?: AssertionAsked;
}

/** The claims without those that are the protocol's, or for ID tokens the profile's, and those that there is no room for. */
export function allowedClaims(
  actions: Pick<Actions, 'refused'>,
  { trigger, to, about }: { trigger: Trigger; to: ClaimTarget; about: ActionsAbout },
  claims: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  const refuse = (why: string) => actions.refused(trigger, `a claim: ${why}`, about);
  const allowed = Object.entries(claims).filter(([claim]) => {
    const fault = claimFault(claim, [to]);
    if (fault !== undefined) refuse(fault);
    return fault === undefined;
  });
  return Object.fromEntries(fitting(allowed, (claim) => claim, refuse));
}
