// The part of the login page that offers passkeys.
import type { Context } from 'koa';
import { requestOptions } from '../../../capabilities/webauthn/ceremonies.ts';
import { customOrigin, ownRelyingParty } from '../../../capabilities/webauthn/relying-party.ts';
import type { Connection } from '../../../records/collections.ts';
import { passkeyOptions } from '../../../records/database-options.ts';
import type { Config } from '../../../tenant/config.ts';
import { type RequestPage, stepPath } from '../../flow/request-page.ts';
import { PASSKEY_VERIFICATION } from './passkeys.ts';
import { beginSession, type SessionDependencies } from './session.ts';

/** The path, below the waiting request, that the login page posts a passkey to. */
export const PASSKEY_STEP = 'passkey';

export interface OfferDependencies extends SessionDependencies {
  baseUrl: string;
  config: Pick<Config, 'settings'>;
}

/** The part of the login page's model for passkeys. */
interface PasskeyOffer {
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
  { pending }: RequestPage,
  connection: Connection,
): Promise<PasskeyOffer | undefined> {
  const passkeySettings = passkeyOptions(connection);
  if (passkeySettings === undefined) return undefined;
  const { challenge_ui: ui = 'both' } = passkeySettings;
  const at = customOrigin(ctx);
  const { authSession, challenge } = await beginSession(deps, {
    clientId: pending.clientId,
    connection: connection.name,
    request: pending.uid,
    at,
  });
  return {
    passkey: {
      action: stepPath(pending, PASSKEY_STEP),
      options: JSON.stringify(requestOptions(ownRelyingParty(deps, at), challenge, PASSKEY_VERIFICATION)),
      session: authSession,
      autofill: ui !== 'button',
      button: ui !== 'autofill',
    },
  };
}
