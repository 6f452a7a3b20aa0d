// Users of custom databases, as their scripts return them.

import { lookupEmail } from '../records/base/email.ts';
import { DATABASE, STRATEGIES } from '../records/connections/connections.ts';
import type { UpstreamGrant } from '../records/connections/identities.ts';
import { isJsonObject } from '../runtime/json.ts';
import type { Identity } from './changes.ts';
import { type ImportedFactor, importedFactors } from './imported-factors.ts';
import { rootProfile } from './profile.ts';
import type { OldUserRecord } from './transfer/moved-one.ts';

export interface DatabaseUser {
  /** The id in the database; the user's id here is `auth0|` and this. */
  upstreamId: string;
  /** In lower case. */
  email?: string | undefined;
  /** In lower case. Never in the form of an e-mail address, as that could be another user's. */
  username?: string | undefined;
  /** All other members that the script returned. */
  profile: Readonly<Record<string, unknown>>;
  metadata: { user_metadata?: Record<string, unknown>; app_metadata?: Record<string, unknown> };
  /** `access_token` and `refresh_token` of the script's result; stored encrypted. */
  grant: UpstreamGrant | undefined;
  /** Second factors (`mfa_factors`), imported when the user is created here. */
  factors: readonly ImportedFactor[];
  /** Providers of a second factor that the user must pass whatever the policy, set when the user or the password is stored here. */
  multifactor?: readonly string[] | undefined;
  /** All of the user, of a tenant that this one takes the place of: then the user is made with linked identities. */
  record?: OldUserRecord | undefined;
  /** Why there may be no record of them here, in English; whoever is asked whether there is such a user hears that there is. */
  refusal?: string | undefined;
}

/**
 * @returns the user, or in English why the result is not accepted: it has no valid id, or invalid second factors,
 *   without which the password alone would log in the user.
 */
export function databaseUser(result: unknown): DatabaseUser | string {
  const noId = 'it gave no user with a user_id';
  if (!isJsonObject(result)) return noId;
  const { user_metadata, app_metadata, access_token, refresh_token, mfa_factors, ...profile } = result;
  const id = profile.user_id ?? profile.id;
  // An unsafe integer was rounded when it was parsed, so that several users could share it.
  const isNumber = typeof id === 'number' && Number.isSafeInteger(id);
  // Stores do not distinguish unpaired surrogates.
  if (!isNumber && (typeof id !== 'string' || !/^[^\p{Cc}\p{Cs}]{1,255}$/u.test(id))) return noId;
  const factors = importedFactors.safeParse(mfa_factors ?? []);
  if (!factors.success) return 'Unable to import MFA factors.';
  const { email, username: name } = rootProfile({ profile, nonPersistent: [] });
  const username = name?.trim().toLowerCase();
  const isName = username !== undefined && /^[^\p{Cc}\p{Cs}]{1,128}$/u.test(username);
  const tokens = {
    ...(typeof access_token === 'string' && { access_token }),
    ...(typeof refresh_token === 'string' && { refresh_token }),
  };
  return {
    upstreamId: String(id),
    email,
    username: isName && lookupEmail(username) === undefined ? username : undefined,
    profile,
    metadata: {
      ...(isJsonObject(user_metadata) && { user_metadata }),
      ...(isJsonObject(app_metadata) && { app_metadata }),
    },
    grant: Object.keys(tokens).length === 0 ? undefined : tokens,
    factors: factors.data,
  };
}

/** Returns the addresses by which a user is found here, and the kinds that must be unique. */
export function addressesOf({ email, username }: DatabaseUser) {
  const addresses = {
    ...(email !== undefined && { email }),
    ...(username !== undefined && { username }),
  };
  return { addresses, unique: STRATEGIES[DATABASE].unique };
}

// docs/understand/decisions/connections.md#a-user-of-a-custom-database-never-becomes-another-user
/**
 * Returns whether an identity with the user's id also has the user's e-mail address or username. A script that returns a wrong
 * id must not log in one user as another. If the address changes in the custom database, it must be changed here, too.
 */
export function isSameUser(
  identity: Pick<Identity, 'provider' | 'email' | 'username'>,
  { email, username }: DatabaseUser,
): boolean {
  if (identity.provider !== DATABASE) return false;
  if (identity.email !== undefined && email !== undefined) return identity.email === email;
  return identity.username !== undefined && identity.username === username;
}
