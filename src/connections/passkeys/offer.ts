// Passkeys on the login page: what it shows, for a connection that takes them.
import type { Context } from 'koa';
import { type RequestPage, stepPath } from '../../flow/request-page.ts';
import type { Connection } from '../../records/collections.ts';
import { passkeyOptions } from '../../records/database-options.ts';
import type { Config } from '../../tenant/config.ts';
import { requestOptions } from '../../webauthn/ceremonies.ts';
import { customOrigin, ownRelyingParty } from '../../webauthn/relying-party.ts';
import { PASSKEY_VERIFICATION } from './passkeys.ts';
import { beginSession, type SessionDependencies } from './session.ts';

/** The step of the login page's form. */
export const PASSKEY_STEP = 'passkey';

export interface OfferDependencies extends SessionDependencies {
  baseUrl: string;
  config: Pick<Config, 'settings' | 'customOrigins'>;
}

/** What the login page shows of passkeys. */
interface PasskeyOffer {
  passkey: {
    action: string;
    /** JSON, for the browser. */
    options: string;
    session: string;
    /** Whether browsers offer passkeys where an address is typed, and whether there is a button. */
    autofill: boolean;
    button: boolean;
  };
}

/** Begins a login with a passkey, beside that with a password. @returns nothing where the connection takes none. */
export async function offerPasskey(
  deps: OfferDependencies,
  ctx: Context,
  { pending }: RequestPage,
  connection: Connection,
): Promise<PasskeyOffer | undefined> {
  const offered = passkeyOptions(connection);
  if (offered === undefined) return undefined;
  const { challenge_ui: shown = 'both' } = offered;
  const at = customOrigin(ctx, deps);
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
      autofill: shown !== 'button',
      button: shown !== 'autofill',
    },
  };
}
