// Anonymous sessions in the tenant file: visitors who have not logged in get tokens that name no user.
import { z } from 'zod';

/** The setting of an application: whether it may start anonymous sessions. */
export const anonymousSessionsSchema = z.looseObject({ active: z.boolean().optional() });

/** Thirty days, and a year, in minutes. */
const LIFETIME = 43_200;
const MAX_MINUTES = 525_600;

export const tenantSessionsSchema = z.looseObject({
  anonymous: z
    .looseObject({ lifetime_in_minutes: z.number().int().min(1).max(MAX_MINUTES).nullish() })
    .nullish(),
});

/** Returns how long an anonymous session lasts, in seconds. */
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

/**
 * Returns why an application cannot have anonymous sessions, whose tokens are not bound to a key; undefined if it can.
 */
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
