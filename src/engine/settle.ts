// The one end of every login in the browser: the session that it makes is stored, and the login looked at again.
import { errors, type KoaContextWithOIDC, type Session } from 'oidc-provider';
import { FIRST_VERSION, type Login } from '../users/login.ts';
import type { Users } from '../users/users.ts';
import { refusalOf } from './admission.ts';

export interface SettleDependencies {
  users: Users;
  /** How long a session lasts from now, seconds. */
  sessionLifetime(session: Session): number;
}

/** A login as the engine is told of it, by whatever way it came. */
export interface EngineLogin {
  accountId: string;
  amr: string[];
  acr?: string;
  connection?: string;
  credentialVersion: number;
}

/** The version of the credential that a session, or what was granted in one, was proved by. */
export function credentialVersionOf(kept: object): number {
  const { credentialVersion } = kept as { credentialVersion?: number };
  return credentialVersion ?? FIRST_VERSION;
}

/** A login in the words of the engine. */
export function engineLogin({
  userId,
  amr,
  acr,
  connection,
  credentialVersion,
}: Login & { acr?: string | undefined }): EngineLogin {
  return {
    accountId: userId,
    amr: [...amr],
    ...(acr === undefined ? {} : { acr }),
    ...(connection === '' ? {} : { connection }),
    credentialVersion,
  };
}

/**
 * Stores the session of a login that this request ends, before anything is made of it. From then on whatever ends
 * the user's sessions finds it; what was before that, this sees.
 * @throws errors.OIDCProviderError, for the application, when the login does not hold any more.
 */
export async function settle(
  { users, sessionLifetime }: SettleDependencies,
  { oidc }: KoaContextWithOIDC,
): Promise<void> {
  const login = oidc.result?.login as EngineLogin | undefined;
  const { session } = oidc;
  if (login === undefined || session === undefined) return;
  const { accountId: userId, connection, credentialVersion } = login;
  Object.assign(session, { credentialVersion, ...(connection !== undefined && { connection }) });
  await session.save(sessionLifetime(session));
  // The engine sets no cookie for a new session that it finds untouched.
  Object.assign(session, { touched: true });
  const refusal = await refusalOf(users, { userId, credentialVersion });
  if (refusal === undefined) return;
  await session.destroy();
  if (refusal.error === 'invalid_grant') throw new errors.LoginRequired('Login required');
  throw new errors.CustomOIDCProviderError(refusal.error, refusal.error_description);
}
