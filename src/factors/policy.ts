// Which second factors the tenant has switched on, and when it wants one.

import type { Client } from '../records/collections.ts';
import type { Config } from '../tenant/config.ts';
import { isByAddress } from '../users/identities.ts';
import type { User } from '../users/user.ts';
import type { Users } from '../users/users.ts';

/** A second factor by the name that SDKs have for it (`mfa_requirements`). */
export type FactorType = 'otp' | 'phone' | 'email' | 'push-notification' | 'recovery-code';

/** The authentication context of a login with a second factor; `acr_values` may ask for it. */
export const MFA_POLICY = 'http://schemas.openid.net/pape/policies/2007/06/multi-factor';

const NAMES: Record<string, FactorType> = {
  otp: 'otp',
  sms: 'phone',
  email: 'email',
  'push-notification': 'push-notification',
  'recovery-code': 'recovery-code',
};

/** The factors that are on. */
export function enabledFactors(config: Config): Set<FactorType> {
  const { guardianFactors = [] } = config.settings();
  return new Set(guardianFactors.filter(({ enabled }) => enabled).flatMap(({ name }) => NAMES[name] ?? []));
}

/** Whether anybody could give a second factor: one that recovers is none on its own. */
export function canEnroll(factors: ReadonlySet<FactorType>): boolean {
  return [...factors].some((factor) => factor !== 'recovery-code');
}

/** When a login needs a second factor. `risk`: from a browser or address that the user is not known by. */
export type Demand = 'always' | 'risk' | 'never';

/**
 * What the tenant, the application and the user want of a login: the application's own word
 * (`client_metadata.mfa_policy`: `always` or `never`) comes before the tenant's, the user's `multifactor`
 * before both.
 */
export async function demandOf(
  { config, users }: { config: Config; users: Pick<Users, 'identitiesOf'> },
  client: Client | undefined,
  user: User,
): Promise<Demand> {
  if (!canEnroll(enabledFactors(config))) return 'never';
  if ((user.multifactor ?? []).length > 0) return 'always';
  const own = client?.client_metadata?.mfa_policy;
  if (own === 'always' || own === 'never') return own;
  const { guardianPolicies = [], tenant } = config.settings();
  const isExempt = tenant.flags.mfa_for_passwordless === false;
  if (isExempt && isByAddress(await users.identitiesOf(user.id))) return 'never';
  if (guardianPolicies.includes('all-applications')) return 'always';
  return guardianPolicies.includes('confidence-score') ? 'risk' : 'never';
}
