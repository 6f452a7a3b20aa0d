// Somebody as a database elsewhere has them, and whom of ours that means.
import { DATABASE, STRATEGIES } from '../records/connections.ts';
import { normalizeEmail } from '../records/email.ts';
import type { UpstreamGrant } from '../records/identities.ts';
import type { Identity } from './identities.ts';
import { type ImportedFactor, importedFactors } from './imported-factors.ts';
import { rootProfile } from './root-profile.ts';

/** A user of a database elsewhere. */
export interface DatabaseUser {
  /** What they are called there: the user's id here after the strategy and a bar. */
  upstreamId: string;
  /** In lower case. */
  email?: string | undefined;
  /** In lower case; never one that reads as an e-mail address, which could be somebody else's. */
  username?: string | undefined;
  /** All that is said of them, without what is named here. */
  profile: Readonly<Record<string, unknown>>;
  metadata: { user_metadata?: Record<string, unknown>; app_metadata?: Record<string, unknown> };
  /** Tokens of theirs for others, which are kept sealed. */
  grant: UpstreamGrant | undefined;
  /** Second factors, which whoever is new here brings along. */
  factors: readonly ImportedFactor[];
}

/**
 * Reads what a script gave.
 * @returns in English why it is no user: it has no id, or one that nobody can have, or second factors without which they
 *   would come in by the password alone.
 */
export function databaseUser(given: unknown): DatabaseUser | string {
  const noId = 'it gave no user with a user_id';
  if (!isObject(given)) return noId;
  const { user_metadata, app_metadata, access_token, refresh_token, mfa_factors, ...profile } = given;
  const id = profile.user_id ?? profile.id;
  // A larger number was rounded when it was read: several users would share it.
  const isNumber = typeof id === 'number' && Number.isSafeInteger(id);
  // Halves of surrogate pairs are all the same to a store.
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
    username: isName && normalizeEmail(username) === undefined ? username : undefined,
    profile,
    metadata: {
      ...(isObject(user_metadata) && { user_metadata }),
      ...(isObject(app_metadata) && { app_metadata }),
    },
    grant: Object.keys(tokens).length === 0 ? undefined : tokens,
    factors: factors.data,
  };
}

/** The addresses that a user is found by here, and of which kinds nobody else may have theirs. */
export function addressesOf({ email, username }: DatabaseUser) {
  const addresses = {
    ...(email !== undefined && { email }),
    ...(username !== undefined && { username }),
  };
  return { addresses, unique: STRATEGIES[DATABASE].unique };
}

/**
 * Whether an identity is the user's, beside having the same id: a script that is wrong about ids must not let one user in
 * as another. Whose address was changed elsewhere is known again when it has been changed here, too.
 */
export function isSameUser(
  identity: Pick<Identity, 'provider' | 'email' | 'username'>,
  { email, username }: DatabaseUser,
): boolean {
  if (identity.provider !== DATABASE) return false;
  if (identity.email !== undefined && email !== undefined) return identity.email === email;
  return identity.username !== undefined && identity.username === username;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
