// Anonymous sessions in the tenant file: visitors who have not logged in, and get tokens that name nobody.
import { z } from 'zod';

/** Of an application: whether it may begin them. */
export const anonymousSessionsSchema = z.looseObject({ active: z.boolean().optional() });

/** Minutes of thirty days, and of a year. */
const LIFETIME = 43_200;
const LONGEST = 525_600;

/** Of the tenant. */
export const tenantSessionsSchema = z.looseObject({
  anonymous: z.looseObject({ lifetime_in_minutes: z.number().int().min(1).max(LONGEST).nullish() }).nullish(),
});

/** How long an anonymous session lasts, seconds. */
export function anonymousSessionSeconds(tenant: {
  readonly sessions?:
    | {
        readonly anonymous?: { readonly lifetime_in_minutes?: number | null | undefined } | null | undefined;
      }
    | null
    | undefined;
}): number {
  return 60 * (tenant.sessions?.anonymous?.lifetime_in_minutes ?? LIFETIME);
}

/** Why an application cannot have anonymous sessions, whose tokens are bound to no key. @returns undefined where it can. */
export function anonymousClientFault(client: {
  readonly anonymous_sessions?: { readonly active?: boolean | undefined } | null | undefined;
  readonly require_proof_of_possession?: boolean | undefined;
  readonly compliance_level?: string | null | undefined;
}): string | undefined {
  if (client.anonymous_sessions?.active !== true) return undefined;
  const { require_proof_of_possession: bound, compliance_level: level = null } = client;
  if (bound === true) return 'is not for applications with require_proof_of_possession';
  return level === null || level === 'none' ? undefined : 'is not for applications with a compliance_level';
}
