// Sets a new password by the My Account API: begun by a fresh login, then set by the same login. As with every new
// password, all sessions of the user end, including the present one.
import type { Context } from 'koa';
import { requestContextOf } from '../../engine/login/action-event.ts';
import { AuthError } from '../../http/errors.ts';
import type { Connection } from '../../records/collections.ts';
import { changesPasswords, databaseOptions } from '../../records/database-options.ts';
import type { Identity } from '../../users/changes.ts';
import { publishedPolicy } from '../../users/password-policy.ts';
import { FRESH_SECONDS } from '../../users/user-acts.ts';
import {
  openReset,
  type ResetDependencies,
  type ResetRefusal,
  resetPassword,
} from '../connections/database/reset.ts';
import { mainIdentifier } from '../connections/database/ticket-link.ts';
import { type Actor, requireLoginFor } from './actor.ts';
import { unknownSession } from './enrollments.ts';
import { invalidField } from './errors.ts';
import { type MethodDependencies, passwordsOf } from './methods.ts';
import { type IdentitySelection, isIdentity } from './passkeys.ts';
import { type MethodView, passwordId, passwordView } from './views.ts';

export interface PasswordDependencies extends MethodDependencies, ResetDependencies {
  users: MethodDependencies['users'];
  config: MethodDependencies['config'];
}

const PURPOSE = 'account_password';

/** A change of password that was begun. */
interface StartedPasswordChange {
  id: string;
  authSession: string;
  /** The password policy of the connection. */
  policy: object;
}

/** The login that may set the password, and the identity that it is for. */
interface StoredPasswordChange {
  login: string;
  clientId: string;
  identityId: string;
}

/**
 * Begins to set a new password.
 * @throws AuthError 401 when the login is not fresh; 400 when no identity of the user has a password that can be
 *   changed here.
 */
export async function startPasswordChange(
  deps: PasswordDependencies,
  actor: Actor,
  selection: IdentitySelection,
): Promise<StartedPasswordChange> {
  await requireLoginFor(deps, actor, 'password');
  const { user, clientId, login } = actor;
  const { identity, connection } = await identityFor(deps, actor, selection);
  const { id: identityId } = identity;
  const change: StoredPasswordChange = { login: login.id, clientId, identityId };
  const { secret } = await deps.challenges.issueTicket({
    purpose: PURPOSE,
    // One for each login. The next one replaces it.
    subject: `${user.id}\n${login.id}`,
    userId: user.id,
    ttlSeconds: FRESH_SECONDS,
    data: {
      ...mainIdentifier(identity),
      connection: connection.name,
      clientId,
      credentialVersion: login.credentialVersion,
      ticket: { includeEmail: false, marksVerified: false },
      kept: change,
    },
  });
  return {
    id: passwordId(identityId),
    authSession: secret,
    policy: publishedPolicy(databaseOptions(connection)),
  };
}

async function identityFor(
  deps: PasswordDependencies,
  { user }: Actor,
  selection: IdentitySelection,
): Promise<{ identity: Identity; connection: Connection }> {
  for (const identity of await passwordsOf(deps, user)) {
    const connection = isIdentity(identity, selection)
      ? await deps.config.connection(identity.connection)
      : undefined;
    if (connection !== undefined && changesPasswords(connection)) return { identity, connection };
  }
  throw invalidField('connection', 'There is no password of this user that can be changed here.');
}

/**
 * Sets the new password. Of several concurrent calls one succeeds.
 * @throws AuthError 401 as {@link requireLoginFor}; 400 `invalid_grant` when the `auth_session` is unknown, used,
 *   expired or another login's; 400 when the password is not allowed, after which the `auth_session` stays valid; 503
 *   when it could not be set.
 */
export async function verifyPassword(
  deps: PasswordDependencies,
  ctx: Context,
  actor: Actor,
  { id, authSession, password }: { id: string; authSession: string; password: string },
): Promise<MethodView> {
  await requireLoginFor(deps, actor, 'completion');
  const { user, clientId, login, languages } = actor;
  const open = await openReset(deps, authSession, PURPOSE);
  const change = open?.verifiedChallenge.data.kept as StoredPasswordChange | undefined;
  if (open === undefined || change === undefined || open.user.id !== user.id) throw unknownSession();
  if (change.login !== login.id || change.clientId !== clientId || passwordId(change.identityId) !== id)
    throw unknownSession();
  const facts = { caller: { ip: ctx.ip }, languages, asker: requestContextOf(ctx, clientId) };
  const reset = { ticket: authSession, purpose: PURPOSE, password, by: user, ...facts };
  const refusal = await resetPassword(deps, open, reset);
  if (refusal !== undefined) throw refusalError(refusal);
  const [now, identities] = await Promise.all([deps.users.get(user.id), deps.users.identitiesOf(user.id)]);
  const identity = identities.find((one) => one.id === change.identityId);
  if (now === undefined || identity === undefined) throw unknownSession();
  return passwordView(now, identity);
}

const REASONS: Partial<Record<ResetRefusal['reason'], string>> = {
  'weak-password': 'The password is too weak.',
  'common-password': 'The password is too common.',
  'personal-password': 'The password contains personal information.',
  'used-password': 'The password was used before.',
};

function refusalError({ reason }: ResetRefusal): AuthError {
  if (reason === 'expired') return unknownSession();
  if (reason === 'not-changed')
    return new AuthError(503, 'temporarily_unavailable', 'The password could not be changed. Begin again.');
  return invalidField('new_password', REASONS[reason] ?? 'The password cannot be used.');
}
