// The claims that each scope gives (OpenID Connect Core §5.4; docs/claims.md), and the engine's account.

import { type Account, errors, type FindAccount, type KoaContextWithOIDC } from 'oidc-provider';
import { PROFILE_CLAIMS } from '../../records/users.ts';
import type { Config } from '../../tenant/config.ts';
import { standardClaims } from '../../users/profile.ts';
import type { User } from '../../users/user.ts';
import { admissionError } from '../admission/admission.ts';
import { notMemberDescription, type Organizations, organizationOf } from '../admission/organizations.ts';
import type { ReadAhead } from '../base/read-ahead.ts';
import { OIDC_SCOPES } from '../base/requested-audience.ts';
import { applicationSettings } from '../client/applications.ts';
import type { TokenUsers } from './email-at-issue.ts';
import { updatedAtFor } from './standard-claims.ts';

/** The engine's `claims` configuration. */
export const claimsByScope = {
  openid: ['sub', 'auth_time', 'acr', 'amr', 'org_id', 'org_name'],
  profile: [...PROFILE_CLAIMS, 'updated_at'],
  email: ['email', 'email_verified'],
  phone: ['phone_number', 'phone_number_verified'],
  address: ['address'],
  sid: null,
  iss: null,
};

const SCOPE_BY_CLAIM = new Map(
  (['profile', 'email', 'phone', 'address'] as const).flatMap((scope) =>
    claimsByScope[scope].map((claim) => [claim as string, scope] as const),
  ),
);

/**
 * Returns the scopes whose consent covers individually requested claims (OpenID Connect Core §5.5). Claims about
 * the login (`sub`, `auth_time`, `acr` …) need none.
 */
export function scopesOfClaims(claims: Iterable<string>): string[] {
  return [...new Set([...claims].flatMap((claim) => SCOPE_BY_CLAIM.get(claim) ?? []))];
}

/**
 * Returns the names in a `claims` parameter, of `userinfo` and `id_token` together.
 * @param claims the parameter as the engine has checked it; undefined when there is none.
 */
export function requestedClaims(claims: unknown): string[] {
  if (typeof claims !== 'string' || claims === '') return [];
  const { userinfo = {}, id_token = {} } = JSON.parse(claims) as { userinfo?: object; id_token?: object };
  return [...Object.keys(userinfo), ...Object.keys(id_token)];
}

/**
 * The users that were read when the login of the current request was checked, by the engine's context: they need
 * not be read again.
 */
export type VerifiedUsers = WeakMap<object, User>;

interface AccountDependencies {
  ahead: Pick<ReadAhead, 'user'>;
  config: Config;
  verifiedUsers: VerifiedUsers;
  tokenUsers: TokenUsers;
  organizations: Pick<Organizations, 'claims' | 'isMember'>;
}

/**
 * Refuses a code or refresh token for an organization when the user is no longer a member, or the organization no
 * longer has the user's connection.
 */
async function refuseFormerMember(
  organizations: AccountDependencies['organizations'],
  ctx: KoaContextWithOIDC,
  userId: string,
): Promise<void> {
  const organization = ctx.oidc.route === 'token' ? organizationOf(ctx) : undefined;
  if (organization === undefined) return;
  const { connection } = (ctx.oidc.entities.Grant ?? {}) as { connection?: string };
  if (await organizations.isMember(organization, userId, connection)) return;
  throw new errors.AccessDenied(notMemberDescription(organization));
}

/**
 * The engine's `findAccount`: undefined for a removed user.
 * @returns a function that throws `unauthorized` for a blocked user, in every flow.
 */
export function accounts({
  ahead,
  config,
  verifiedUsers,
  tokenUsers,
  organizations,
}: AccountDependencies): FindAccount {
  return async (ctx, sub): Promise<Account | undefined> => {
    const known = verifiedUsers.get(ctx.oidc);
    const user = known?.id === sub ? known : await ahead.user(sub);
    if (user === undefined) return undefined;
    const refusal = admissionError(user);
    if (refusal !== undefined) {
      throw new errors.CustomOIDCProviderError(refusal.error, refusal.error_description);
    }
    tokenUsers.set(ctx.oidc, user);
    await refuseFormerMember(organizations, ctx, sub);
    const { client } = ctx.oidc;
    const updatedAt = updatedAtFor(config, client && applicationSettings(client));
    return {
      accountId: sub,
      claims: async () => ({
        sub,
        // All claims: the engine picks those of the granted scopes and of the `claims` parameter.
        ...standardClaims(user, OIDC_SCOPES, { updatedAt }),
        // Set after the profile, so that no profile claim can pass for a membership.
        ...(await organizations.claims(organizationOf(ctx))),
      }),
    };
  };
}
