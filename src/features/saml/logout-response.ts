// The LogoutResponse to a service provider, or the redirect for one that takes none.

import type { OutgoingMessage } from '../../capabilities/saml-messages/bindings.ts';
import { STATUS } from '../../capabilities/saml-messages/names.ts';
import { newId } from '../../capabilities/saml-messages/saml-message.ts';
import { signRoot } from '../../capabilities/saml-messages/signature.ts';
import { type Status, statusResponse } from '../../capabilities/saml-messages/status-response.ts';
import { type Clock, epochSeconds } from '../../runtime/clock.ts';
import type { Random } from '../../runtime/secrets.ts';
import type { IdentityProvider } from './identity-provider.ts';
import type { ServiceProvider } from './service-provider.ts';

export type LogoutStep = { redirect: string } | { message: OutgoingMessage };

export interface LogoutAnswerDependencies {
  idp: IdentityProvider;
  /** Dates messages. */
  wallClock: Clock;
  random: Random;
  /** URL of our signed-out page. */
  signedOutPage: string;
}

interface AnsweredRequest {
  requestId: string;
  relayState?: string | undefined;
}

/** Returns the status of a logout that took place (Core §3.7.3.2). */
export function statusOf(partial: boolean): Status {
  return partial ? { code: STATUS.responder, detail: STATUS.partialLogout } : { code: STATUS.success };
}

// docs/understand/decisions/saml.md#a-service-provider-without-logoutcallback-gets-no-logoutrequest
/**
 * Returns the answer to a LogoutRequest that was carried out. An application without a logout callback gets none:
 * the browser goes to RelayState if that is one of the application's allowed logout URLs, otherwise to the
 * signed-out page.
 */
export async function answerLogout(
  { idp, wallClock, random, signedOutPage }: LogoutAnswerDependencies,
  sp: ServiceProvider,
  { requestId, relayState }: AnsweredRequest,
  status: Status,
): Promise<LogoutStep> {
  const { logoutUrl: location } = sp;
  if (location === undefined) {
    return { redirect: sp.logoutAddresses.find((url) => url === relayState) ?? signedOutPage };
  }
  const id = newId(random);
  const frame = {
    issuer: await idp.entityId(sp.clientId),
    now: epochSeconds(wallClock),
    inResponseTo: requestId,
    destination: location,
  };
  const { markup } = statusResponse('samlp:LogoutResponse', frame, id, status);
  return {
    message: { kind: 'response', markup: await signForPost(idp, sp, markup, id), relayState, location },
  };
}

/** Signs a logout message for the POST binding. A redirect signs the query instead (Bindings §3.4.4.1). */
export async function signForPost(
  idp: IdentityProvider,
  sp: ServiceProvider,
  markup: string,
  id: string,
): Promise<string> {
  return sp.logoutBinding === 'redirect' ? markup : signRoot(markup, id, idp.signer(sp));
}
