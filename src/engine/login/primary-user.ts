// `setPrimaryUser` of an action: the login becomes that of another user. It is allowed only for the user to whom
// the identity that was logged in with has been linked; otherwise an action could log in to any account.
import { errors, type KoaContextWithOIDC } from 'oidc-provider';
import { isAdministratorId } from '../../records/administrators.ts';
import type { Users } from '../../users/users.ts';
import type { ActionLogin } from './login-event.ts';
import { aboutOf, type LoginRunDependencies, TRIGGER } from './login-runs.ts';
import type { PrimaryLogin } from './waiting-actions.ts';

/** The user that an action has made the login's user. */
export interface PrimaryUser {
  userId: string;
  /** @see PrimaryLogin.identities */
  identities: string[];
  /** @see Login.credentialVersion */
  credentialVersion: number;
}

const REFUSED = 'The identity that was logged in with is none of the named user.';

/**
 * Verifies the user that an action has named.
 * @throws errors.CustomOIDCProviderError when the identities that the login may have used are not that user's.
 */
export async function verifyPrimaryUser(
  { users, actions }: LoginRunDependencies,
  ctx: KoaContextWithOIDC,
  login: ActionLogin,
  userId: string,
): Promise<PrimaryUser> {
  const { connection, user, identities: before } = login;
  // The identities as they were before the actions ran: an action that links the user to another one deletes it.
  const identities = before.filter((one) => one.connection === connection).map(({ id }) => id);
  // Read before the identities: unlinking one after this changes the version, and ends the login.
  const credentialVersion = await users.credentialVersion(userId);
  if (identities.length > 0 && !isAdministratorId(userId) && (await belongTo(users, identities, userId)))
    return { userId, identities, credentialVersion };
  actions.recordRefusal(TRIGGER, `setPrimaryUser ${userId} for ${user.id}`, aboutOf(ctx, login));
  throw new errors.CustomOIDCProviderError('access_denied', REFUSED);
}

/**
 * Verifies the named user again when the login resumes.
 * @throws errors.CustomOIDCProviderError when the identities are no longer that user's.
 */
export async function verifyStillPrimary(
  { users }: { users: Pick<Users, 'identitiesOf'> },
  { login, identities }: PrimaryLogin,
): Promise<void> {
  if (await belongTo(users, identities, login.userId)) return;
  throw new errors.CustomOIDCProviderError('access_denied', REFUSED);
}

async function belongTo(
  users: Pick<Users, 'identitiesOf'>,
  ids: readonly string[],
  userId: string,
): Promise<boolean> {
  const ownIds = new Set((await users.identitiesOf(userId)).map(({ id }) => id));
  return ids.every((id) => ownIds.has(id));
}
