// Login with a password.
import type { Context } from 'koa';
import { AuthError } from '../../http/errors.ts';
import { type Attempts, tryProof } from '../../protection/attempts.ts';
import type { Connection } from '../../records/collections.ts';
import { type Clock, epochSeconds } from '../../runtime/clock.ts';
import type { Config } from '../../tenant/config.ts';
import type { Events } from '../../tenant/events.ts';
import { NOBODY } from '../../users/identities.ts';
import type { Login } from '../../users/login.ts';
import type { Users } from '../../users/users.ts';

export interface LoginDependencies {
  config: Config;
  users: Users;
  events: Events;
  attempts: Attempts;
  /** Dates logins. */
  wallClock: Clock;
}

export interface PasswordLogin {
  clientId: string;
  connection: Connection;
  /** E-mail address or username. */
  identifier: string;
  password: string;
  ip: string;
  /** The browser's identifier, if our page or the application's sent the request. */
  browser?: string | undefined;
}

/** Counts a try of a password. @throws AuthError 429 when a user is tried too often from one address. */
export type LoginLimit = (ctx: Context, connection: Connection, identifier: string) => Promise<void>;

/** What a password proves: the authentication method `pwd` (RFC 8176 §2). */
const PASSWORD: readonly string[] = ['pwd'];

/** A login by a password that was right, or was set, just now. @param wallClock what logins are dated by. */
export function passwordLogin(
  { wallClock }: { wallClock: Clock },
  proved: Pick<Login, 'userId' | 'connection' | 'ip' | 'credentialVersion'>,
): Login {
  return { ...proved, amr: PASSWORD, authTime: epochSeconds(wallClock) };
}

/** The same for an unknown user and a wrong password; SDKs compare it (docs/wire/token.md). */
export const WRONG_CREDENTIALS = 'Wrong email or password.';

/**
 * Verifies a password; takes as long for an unknown user as for a wrong password.
 * @returns the login.
 * @throws AuthError 403 `invalid_grant`, the same whatever was wrong; 429 `too_many_attempts` when there were
 *   too many wrong ones.
 */
export async function logIn(deps: LoginDependencies, login: PasswordLogin): Promise<Login> {
  const { connection, identifier, password, ip, browser, clientId } = login;
  const userId = await deps.users.idInConnection(connection, identifier);
  // Read while the try is counted: who is judged, and by which credential, is known before the password is looked at.
  const reading = Promise.all([deps.users.get(userId ?? NOBODY), deps.users.passwordOf(userId)]);
  reading.catch(() => undefined);
  const attempt = {
    connection: connection.name,
    identifier,
    userId,
    ip,
    browser,
    what: 'password' as const,
    locks: connection.options.brute_force_protection !== false,
  };
  const right = await tryProof(deps.attempts, attempt, async () => (await reading)[1](password));
  const [known] = await reading;
  const seen = { client_id: clientId, connection: connection.name, user_name: identifier, ip };
  if (known === undefined || right === undefined) {
    deps.events.record({
      ...seen,
      type: known === undefined ? 'fu' : 'fp',
      ...(known && { user_id: known.id }),
    });
    throw new AuthError(403, 'invalid_grant', WRONG_CREDENTIALS);
  }
  const about = { userId: known.id, connection: connection.name, ip };
  return passwordLogin(deps, { ...about, credentialVersion: right });
}
