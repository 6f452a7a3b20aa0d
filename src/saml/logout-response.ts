// What a service provider hears of the logout that it began, and where the browser goes if it takes no answer.
import { type Clock, epochSeconds } from '../runtime/clock.ts';
import type { Random } from '../runtime/random.ts';
import type { Outgoing } from './bindings.ts';
import type { IdentityProvider } from './identity-provider.ts';
import { newId } from './message.ts';
import { STATUS } from './names.ts';
import { type Status, statusResponse } from './response.ts';
import type { ServiceProvider } from './service-provider.ts';
import { signElement } from './signature.ts';

/** What the browser gets: an address to go to, or a message to carry. */
export type Step = { redirect: string } | { message: Outgoing };

export interface LogoutAnswerDependencies {
  idp: IdentityProvider;
  /** What messages are dated by. */
  wallClock: Clock;
  random: Random;
  /** Our page that says that the user is logged out. */
  signedOutPage: string;
}

/** The LogoutRequest that is answered. */
export interface Answered {
  requestId: string;
  relayState?: string | undefined;
}

/** The status of a logout that took place (Core §3.7.3.2). */
export function statusOf(partial: boolean): Status {
  return partial ? { code: STATUS.responder, detail: STATUS.partialLogout } : { code: STATUS.success };
}

/**
 * The answer to a LogoutRequest that was carried out. An application without a logout callback takes none: its user is logged out all
 * the same, and sees the page that says so, or the address that RelayState names if it is one of the
 * application's allowed logout URLs.
 */
export async function answerLogout(
  { idp, wallClock, random, signedOutPage }: LogoutAnswerDependencies,
  provider: ServiceProvider,
  { requestId, relayState }: Answered,
  status: Status,
): Promise<Step> {
  const { logoutUrl: location } = provider;
  if (location === undefined) {
    return { redirect: provider.logoutAddresses.find((url) => url === relayState) ?? signedOutPage };
  }
  const id = newId(random);
  const frame = {
    issuer: await idp.entityId(provider.clientId),
    now: epochSeconds(wallClock),
    inResponseTo: requestId,
    destination: location,
  };
  const { markup } = statusResponse('samlp:LogoutResponse', frame, id, status);
  return {
    message: { kind: 'response', markup: signed(idp, provider, markup, id), relayState, location },
  };
}

/** A message about logout as it goes out: a redirect is signed beside it (Bindings §3.4.4.1). */
export function signed(idp: IdentityProvider, provider: ServiceProvider, markup: string, id: string): string {
  return provider.logoutBinding === 'redirect' ? markup : signElement(markup, id, idp.signer(provider));
}
