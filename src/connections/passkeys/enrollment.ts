// Who has logged in with a password is offered a passkey, before the login is answered; and who has come by a passkey of another
// device, one for this device.
import type { SecondFactor } from '../../engine/second-factor.ts';
import type { AfterLogin } from '../../flow/finish.ts';
import { passkeyOptions } from '../../records/database-options.ts';
import type { Store } from '../../store/contract.ts';
import type { Config } from '../../tenant/config.ts';
import type { Login } from '../../users/login.ts';
import type { Users } from '../../users/users.ts';

export interface EnrollmentDependencies {
  config: Config;
  store: Store;
  users: Pick<Users, 'get'>;
  secondFactor: Pick<SecondFactor, 'enrolled'>;
}

/** The cookie of a browser whose user wanted none just now, and for how long it is respected, milliseconds. */
export const LATER = 'passkey_later';
export const LATER_MS = 30 * 86_400_000;

/** Of a request's state: that its login was by a passkey of another device, as the browser says. */
export const FROM_ELSEWHERE = 'passkeyFromElsewhere';

/** More than that no user is offered. */
const MOST = 20;

/** Offers a passkey after what else follows a login. */
export function offerAfterLogin(deps: EnrollmentDependencies, otherwise: AfterLogin): AfterLogin {
  return async (ctx, request, login) => {
    const after = await otherwise(ctx, request, login);
    if (typeof after !== 'object' || !('login' in after) || request.offer?.isAnswered === true) return after;
    const isLocal = ctx.state[FROM_ELSEWHERE] === true;
    if (ctx.cookies.get(LATER) !== undefined || !(await mayEnroll(deps, after.login, isLocal))) return after;
    return { offer: { login: after.login, isAnswered: false, ...(isLocal && { isLocal }) } };
  };
}

/**
 * Whether a login is one that a passkey may be made by. One with a password is: but who has a second factor has given it,
 * or the passkey would be a way around it. One with a passkey is both factors.
 * @param isLocal whether it was with a passkey of another device.
 */
export async function mayEnroll(
  deps: EnrollmentDependencies,
  { userId, connection: name, amr }: Login,
  isLocal: boolean,
): Promise<boolean> {
  const connection = await deps.config.connection(name);
  const offered = connection && passkeyOptions(connection);
  if (offered === undefined) return false;
  const passkeys = await deps.store.collection('passkeys').findBy('user', userId);
  if (isLocal)
    return offered.local_enrollment_enabled !== false && amr.includes('pop') && passkeys.length < MOST;
  if (!amr.includes('pwd') || offered.progressive_enrollment_enabled === false) return false;
  return passkeys.length === 0 && (amr.includes('mfa') || !(await hasSecondFactor(deps, userId)));
}

/**
 * Whether a user has one, be it that nobody enrolled it (a verified address) or that the tenant takes none of its kind now:
 * another application, an action or a later policy may ask for it where this login was asked for none.
 */
async function hasSecondFactor(
  { store, users, secondFactor }: EnrollmentDependencies,
  userId: string,
): Promise<boolean> {
  const [user, kept] = await Promise.all([
    users.get(userId),
    store.collection('authenticators').findBy('user', userId),
  ]);
  if (kept.some(({ active }) => active)) return true;
  return user !== undefined && (await secondFactor.enrolled(user)).length > 0;
}
