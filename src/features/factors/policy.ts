// Which second factors the tenant has switched on, which of them a user has, and when a login needs one.

import type { Client } from '../../records/collections.ts';
import { isAdministratorId } from '../../records/users/administrators.ts';
import { isByAddress } from '../../users/changes.ts';
import type { User } from '../../users/user.ts';
import type { Authenticator } from './authenticators.ts';
import type { Factor, FactorDependencies } from './factor.ts';

type PolicyDependencies = Pick<FactorDependencies, 'config' | 'factors' | 'authenticators' | 'users'>;

/** Returns the factors that are on, in the order of the tenant file. */
export function enabledFactors({
  config,
  factors,
}: Pick<PolicyDependencies, 'config' | 'factors'>): Factor[] {
  const on = config.settings().guardianFactors.filter(({ enabled }) => enabled);
  return [...new Set(on.flatMap(({ name }) => factors.find((factor) => factor.name === name) ?? []))];
}

/**
 * Returns the factors that are on and that a user can enrol. A recovery code cannot be enrolled on its own. The codes of
 * an administrator are not sent by the tenant's providers and actions, which other administrators set up and read.
 */
export function enrollable(
  deps: Pick<PolicyDependencies, 'config' | 'factors'>,
  { id }: Pick<User, 'id'>,
): Factor[] {
  return enabledFactors(deps).filter(
    ({ recovers, isMessage }) => recovers !== true && !(isMessage === true && isAdministratorId(id)),
  );
}

/** Returns the factor of an authenticator; undefined for a kind that this release does not know. */
export function factorOf(
  { factors }: Pick<PolicyDependencies, 'factors'>,
  { kind }: Pick<Authenticator, 'kind'>,
): Factor | undefined {
  return factors.find((factor) => factor.kind === kind);
}

/** Returns whether an authenticator is a recovery code, which is no second factor without another one. */
export function isRecovery(deps: Pick<PolicyDependencies, 'factors'>, one: Authenticator): boolean {
  return factorOf(deps, one)?.recovers === true;
}

/**
 * Returns a user's authenticators of factors that are on: the confirmed ones, and those that follow from the
 * profile. Administrators have their confirmed ones, whatever is on, and no others.
 */
export async function activeAuthenticators(deps: PolicyDependencies, user: User): Promise<Authenticator[]> {
  const stored = await confirmedAuthenticators(deps, user);
  const missing = isAdministratorId(user.id)
    ? []
    : enabledFactors(deps).filter(({ kind }) => stored.every((one) => one.kind !== kind));
  const implied = await Promise.all(missing.map((factor) => factor.ofProfile?.(deps, user)));
  const all = [...stored, ...implied.flatMap((one) => one ?? [])];
  return all.every((one) => isRecovery(deps, one)) ? [] : all;
}

async function confirmedAuthenticators(deps: PolicyDependencies, { id }: User): Promise<Authenticator[]> {
  // Those of an administrator stay in force: whoever may switch the tenant's factors has no power over the owners.
  // docs/understand/decisions/console-account.md#the-tenants-own-code-and-mail-have-no-power-over-administrators
  const enabled = isAdministratorId(id) ? deps.factors : enabledFactors(deps);
  const stored = await deps.authenticators.of(id);
  return stored.filter((one) => one.active && enabled.some(({ kind }) => kind === one.kind));
}

// docs/understand/decisions/users-linking.md#a-link-must-not-take-a-second-factor-away
/**
 * Returns whether a user who becomes an identity of another would lose the protection of a second factor: factors are
 * those of the user who stays. An address of the profile does not make up for a factor that was enrolled.
 */
export async function losesFactor(
  deps: PolicyDependencies,
  { stays, goes }: { stays: User; goes: User },
): Promise<boolean> {
  const hasEnrolled = async (user: User) =>
    (await confirmedAuthenticators(deps, user)).some((one) => !isRecovery(deps, one)) ||
    (await deps.users.lacksFactor(user));
  if ((await hasEnrolled(goes)) && !(await hasEnrolled(stays))) return true;
  return (await hasFactor(deps, goes)) && !(await hasFactor(deps, stays));
}

/** Returns whether a user has a second factor, here or left behind at an old tenant (left-factors.ts). */
export async function hasFactor(deps: PolicyDependencies, user: User): Promise<boolean> {
  return (await activeAuthenticators(deps, user)).length > 0 || (await deps.users.lacksFactor(user));
}

/** Returns `mfa_requirements`: the factors that the user can give, or can enrol if they have none. */
export async function requirementsOf(
  deps: PolicyDependencies,
  user: User,
): Promise<Record<string, { type: string }[]>> {
  const active = await activeAuthenticators(deps, user);
  const typesOf = (factors: readonly Factor[]) => factors.map(({ type }) => ({ type }));
  if (active.length === 0) return { enroll: typesOf(enrollable(deps, user)) };
  return { challenge: typesOf(deps.factors.filter(({ kind }) => active.some((one) => one.kind === kind))) };
}

/** When a login needs a second factor. `risk`: when the browser or address is not known for the user. */
type MfaPolicy = 'always' | 'risk' | 'never';

// docs/understand/decisions/second-factors.md#the-user-then-the-application-then-the-tenant-decides-about-a-second-factor
/**
 * Returns when a login needs a second factor. The user's `multifactor` comes first, then the application's
 * `client_metadata.mfa_policy` (`always` or `never`), then the tenant's policies.
 */
export async function policyFor(
  deps: Pick<PolicyDependencies, 'config' | 'factors' | 'users'>,
  client: Client | undefined,
  user: User,
): Promise<MfaPolicy> {
  if (enrollable(deps, user).length === 0) return 'never';
  if ((user.multifactor ?? []).length > 0) return 'always';
  const clientPolicy = client?.client_metadata?.mfa_policy;
  if (clientPolicy === 'always' || clientPolicy === 'never') return clientPolicy;
  const { guardianPolicies, tenant } = deps.config.settings();
  const isExempt = tenant.flags.mfa_for_passwordless === false;
  if (isExempt && isByAddress(await deps.users.identitiesOf(user.id))) return 'never';
  if (guardianPolicies.includes('all-applications')) return 'always';
  return guardianPolicies.includes('confidence-score') ? 'risk' : 'never';
}
