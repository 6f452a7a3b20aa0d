// Offers users a passkey before their login completes: after a login with a password, and after a login with a passkey of
// another device, one for this device.

import type { Context } from 'koa';
import { requestOptions } from '../../../capabilities/webauthn/ceremonies.ts';
import { customOrigin, serverRelyingParty } from '../../../capabilities/webauthn/relying-party.ts';
import type { SecondFactor } from '../../../engine/admission/second-factor.ts';
import { requestValue } from '../../../http/server/request-target.ts';
import type { Connection } from '../../../records/collections.ts';
import { passkeyOptions } from '../../../records/database-options.ts';
import type { Store } from '../../../store/contract.ts';
import type { Config } from '../../../tenant/config.ts';
import type { Login } from '../../../users/login.ts';
import type { Users } from '../../../users/users.ts';
import type { AfterLogin } from '../../flow/finish.ts';
import { type RequestPage, stepPath } from '../../flow/request-page.ts';
import { MAX_PASSKEYS, PASSKEY_VERIFICATION } from './passkeys.ts';
import { beginSession, type SessionDependencies } from './passkeys-session.ts';

export interface EnrollmentDependencies {
  config: Config;
  store: Store;
  users: Pick<Users, 'get'>;
  secondFactor: Pick<SecondFactor, 'enrolledFactors'>;
}

/** The cookie of a browser whose user declined for now, and its lifetime in milliseconds. */
export const DECLINED_COOKIE = 'passkey_later';
export const DECLINED_COOKIE_MS = 30 * 86_400_000;

/** Whether, as the browser says, the login was with a passkey of another device. */
export const isFromOtherDevice = requestValue<boolean>('passkey of another device');

/** Returns an `AfterLogin` that runs another one first and then, if the login goes on, may offer a passkey. */
export function offerAfterLogin(deps: EnrollmentDependencies, inner: AfterLogin): AfterLogin {
  return async (ctx, request, login) => {
    const outcome = await inner(ctx, request, login);
    if (typeof outcome !== 'object' || !('login' in outcome) || request.offer?.isAnswered === true)
      return outcome;
    const isLocal = isFromOtherDevice.of(ctx) === true;
    if (ctx.cookies.get(DECLINED_COOKIE) !== undefined || !(await mayEnroll(deps, outcome.login, isLocal)))
      return outcome;
    return { offer: { login: outcome.login, isAnswered: false, ...(isLocal && { isLocal }) } };
  };
}

// docs/understand/decisions/second-factors.md#a-passkey-is-offered-only-after-a-login-with-a-password
/**
 * Returns whether the user of a login may create a passkey. After a password, a user who has a second factor must have given
 * it, because the passkey will replace both. A passkey counts as both factors.
 * @param isLocal whether the login was with a passkey of another device, and the offer is one for this device.
 */
export async function mayEnroll(
  deps: EnrollmentDependencies,
  { userId, connection: name, amr }: Login,
  isLocal: boolean,
): Promise<boolean> {
  const connection = await deps.config.connection(name);
  const options = connection && passkeyOptions(connection);
  if (options === undefined) return false;
  const passkeys = await deps.store.collection('passkeys').findBy('user', userId);
  if (isLocal)
    return (
      options.local_enrollment_enabled !== false && amr.includes('pop') && passkeys.length < MAX_PASSKEYS
    );
  if (!amr.includes('pwd') || options.progressive_enrollment_enabled === false) return false;
  return passkeys.length === 0 && (amr.includes('mfa') || !(await hasSecondFactor(deps, userId)));
}

/**
 * Returns whether a user has any second factor, including a verified address that serves as one, and factors that the tenant
 * has disabled. Another application, an action, or a later policy may require it even though this login did not.
 */
async function hasSecondFactor(
  { store, users, secondFactor }: EnrollmentDependencies,
  userId: string,
): Promise<boolean> {
  const [user, authenticators] = await Promise.all([
    users.get(userId),
    store.collection('authenticators').findBy('user', userId),
  ]);
  if (authenticators.some(({ active }) => active)) return true;
  return user !== undefined && (await secondFactor.enrolledFactors(user)).length > 0;
}

// The part of the login page that offers passkeys.

/** The path, below the waiting request, that the login page posts a passkey to. */
export const PASSKEY_STEP = 'passkey';

export interface OfferDependencies extends SessionDependencies {
  baseUrl: string;
  config: Pick<Config, 'settings'>;
}

export interface PasskeyOffer {
  passkey: {
    action: string;
    /** The options of `navigator.credentials.get`, JSON. */
    options: string;
    session: string;
    /** Whether browsers offer passkeys at the address field (conditional mediation), and whether there is a button. */
    autofill: boolean;
    button: boolean;
  };
}

/** Begins a login with a passkey beside the password form. @returns undefined if the connection has no passkeys. */
export async function offerPasskey(
  deps: OfferDependencies,
  ctx: Context,
  { waiting }: RequestPage,
  connection: Connection,
): Promise<PasskeyOffer | undefined> {
  const passkeySettings = passkeyOptions(connection);
  if (passkeySettings === undefined) return undefined;
  const { challenge_ui: ui = 'both' } = passkeySettings;
  const at = customOrigin(ctx);
  const { authSession, challenge } = await beginSession(deps, {
    clientId: waiting.clientId,
    connection: connection.name,
    request: waiting.uid,
    at,
  });
  return {
    passkey: {
      action: stepPath(waiting, PASSKEY_STEP),
      options: JSON.stringify(requestOptions(serverRelyingParty(deps, at), challenge, PASSKEY_VERIFICATION)),
      session: authSession,
      autofill: ui !== 'button',
      button: ui !== 'autofill',
    },
  };
}
