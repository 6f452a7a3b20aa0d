// The one end of every login in the browser: the session that it makes is stored, and the login looked at again.
import { errors, type KoaContextWithOIDC, type Session } from 'oidc-provider';
import { FIRST_VERSION, type Login } from '../users/login.ts';
import { refusalOf } from './admission.ts';
import { type LoginEventsDependencies, tellLogin } from './login-events.ts';
import type { SecondFactor } from './second-factor.ts';

export interface SettleDependencies extends LoginEventsDependencies {
  secondFactor: Pick<SecondFactor, 'factorsOf'>;
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
  /** When it was, epoch seconds: a later step of the request does not make it later. */
  ts?: number;
  /** It has made its session; what follows is another step of the same request. */
  isSettled?: true;
}

/** The version of the credential that a session, or what was granted in one, was proved by. */
export function credentialVersionOf(kept: object): number {
  const { credentialVersion } = kept as { credentialVersion?: number };
  return credentialVersion ?? FIRST_VERSION;
}

/** {@link SecondFactor.factorsOf} when a session began. One that does not say so is older than any change. */
export function factorsOf(session: object): string {
  const { factors } = session as { factors?: string };
  return factors ?? 'unknown';
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
export async function settle(deps: SettleDependencies, { oidc, ip }: KoaContextWithOIDC): Promise<void> {
  const { users, sessionLifetime, secondFactor } = deps;
  const login = oidc.result?.login as EngineLogin | undefined;
  const { session } = oidc;
  if (login === undefined || session === undefined) return;
  const { accountId: userId, connection = '', credentialVersion } = login;
  Object.assign(session, { credentialVersion, ...(connection !== '' && { connection }) });
  const isLogin = login.isSettled !== true;
  if (isLogin) Object.assign(session, { factors: await secondFactor.factorsOf(userId) });
  // Together: the store makes one write to disk of the two.
  await Promise.all([session.save(sessionLifetime(session)), isLogin && users.recordLogin(userId, ip)]);
  // The engine sets no cookie for a new session that it finds untouched.
  Object.assign(session, { touched: true });
  const refusal = await refusalOf(users, { userId, credentialVersion });
  const place = { clientId: oidc.client?.clientId ?? '', ip };
  if (refusal === undefined) {
    if (isLogin) await tellLogin(deps, 's', { userId, connection }, place);
    // The steps that follow in this request are given what was answered so far.
    Object.assign(login, { isSettled: true, ts: session.loginTs });
    return;
  }
  await session.destroy();
  await tellLogin(deps, 'f', { userId, connection }, { ...place, description: refusal.error_description });
  if (refusal.error === 'invalid_grant') throw new errors.LoginRequired('Login required');
  throw new errors.CustomOIDCProviderError(refusal.error, refusal.error_description);
}
