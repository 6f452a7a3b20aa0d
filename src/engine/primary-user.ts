// An action says whose login it is to be: of the user whom it, or somebody before it, has linked the identity to that was
// logged in with. Nobody else's: it would be a way into any account.
import { errors, type KoaContextWithOIDC } from 'oidc-provider';
import { isAdministratorId } from '../records/administrators.ts';
import type { Users } from '../users/users.ts';
import type { LoginToJudge } from './login-event.ts';
import { aboutOf, type LoginRunDependencies, TRIGGER } from './login-runs.ts';
import type { PrimaryLogin } from './waiting-actions.ts';

/** The user whom a login is to be of. */
export interface PrimaryUser {
  userId: string;
  /** @see PrimaryLogin.identities */
  identities: string[];
  /** @see Login.credentialVersion */
  credentialVersion: number;
}

const REFUSED = 'The identity that was logged in with is none of the named user.';

/**
 * Whom an action names.
 * @throws errors.CustomOIDCProviderError when the identities that the login may have been by are not that user's.
 */
export async function primaryOf(
  { users, actions }: LoginRunDependencies,
  ctx: KoaContextWithOIDC,
  login: LoginToJudge,
  userId: string,
): Promise<PrimaryUser> {
  const { connection, user, identities: before } = login;
  // As they were before the actions ran: the user may be gone by now.
  const identities = before.filter((one) => one.connection === connection).map(({ id }) => id);
  // Read first: who is parted from an identity after that has another.
  const credentialVersion = await users.credentialVersion(userId);
  if (identities.length > 0 && !isAdministratorId(userId) && (await areOf(users, identities, userId)))
    return { userId, identities, credentialVersion };
  actions.refused(TRIGGER, `setPrimaryUser ${userId} for ${user.id}`, aboutOf(ctx, login));
  throw new errors.CustomOIDCProviderError('access_denied', REFUSED);
}

/** Looked at again when the login goes on. @throws errors.CustomOIDCProviderError when they are that user's no more. */
export async function stillPrimary(
  { users }: { users: Pick<Users, 'identitiesOf'> },
  { login, identities }: PrimaryLogin,
): Promise<void> {
  if (await areOf(users, identities, login.userId)) return;
  throw new errors.CustomOIDCProviderError('access_denied', REFUSED);
}

async function areOf(
  users: Pick<Users, 'identitiesOf'>,
  ids: readonly string[],
  userId: string,
): Promise<boolean> {
  const own = new Set((await users.identitiesOf(userId)).map(({ id }) => id));
  return ids.every((id) => own.has(id));
}
