// Single logout at the other service providers of a session: the request to each, and its answer.
import type { Context } from 'koa';
import { type ReceivedMessage, verifyMessage } from '../../capabilities/saml-messages/bindings.ts';
import { logoutRequest, readLogoutResponse } from '../../capabilities/saml-messages/logout-messages.ts';
import { parseXml } from '../../capabilities/saml-messages/reader.ts';
import { attribute } from '../../capabilities/saml-messages/xml.ts';
import { AuthError } from '../../http/errors.ts';
import { epochSeconds } from '../../runtime/clock.ts';
import { expectation, type SamlLogoutDependencies } from './logout.ts';
import { continueLogout, nextParticipant, propagationOf } from './logout-propagation.ts';
import { type LogoutStep, signForPost } from './logout-response.ts';
import type { ServiceProvider } from './service-provider.ts';

/**
 * Returns the LogoutRequest to the next participant. A participant that has lost its logout callback in the
 * meantime is skipped.
 * @throws AuthError 400 when no such logout is in progress.
 */
export async function nextLogoutRequest(
  deps: SamlLogoutDependencies,
  ctx: Context,
  sp: ServiceProvider,
  ticket: string,
): Promise<LogoutStep> {
  const { propagation, participant, requestId: id } = await nextParticipant(deps, ctx, sp.clientId, ticket);
  const { logoutUrl: destination } = sp;
  if (destination === undefined)
    return { redirect: await continueLogout(deps, propagation, { isSuccess: false }) };
  const issuer = await deps.idp.entityId(sp.clientId);
  const frame = { id, issuer, now: epochSeconds(deps.wallClock), destination };
  const markup = logoutRequest(frame, structuredClone(participant.name_id), participant.session_index);
  return {
    message: {
      kind: 'request',
      markup: await signForPost(deps.idp, sp, markup, id),
      relayState: undefined,
      location: destination,
    },
  };
}

/**
 * Handles the answer to our LogoutRequest. An invalid answer counts as a failure and the logout continues, so that
 * the user is not left half-way.
 * @throws AuthError 400 when it answers no request of ours.
 */
export async function handleLogoutResponse(
  deps: SamlLogoutDependencies,
  ctx: Context,
  sp: ServiceProvider,
  received: ReceivedMessage,
): Promise<LogoutStep> {
  const inResponseTo = attribute(parseXml(received.text), 'InResponseTo') ?? '';
  const propagation = await propagationOf(deps, ctx, sp.clientId, inResponseTo);
  const isSuccess = isSuccessful(deps, sp, received, {
    inResponseTo,
    issuer: propagation.waiting[0]?.issuer,
  });
  return { redirect: await continueLogout(deps, propagation, { isSuccess }) };
}

function isSuccessful(
  deps: SamlLogoutDependencies,
  sp: ServiceProvider,
  received: ReceivedMessage,
  expected: { inResponseTo: string; issuer: string | undefined },
): boolean {
  try {
    const answer = readLogoutResponse(verifyMessage(received, sp.verifier), expectation(deps, sp));
    return (
      answer.isSuccess &&
      answer.inResponseTo === expected.inResponseTo &&
      (expected.issuer === undefined || answer.issuer === expected.issuer)
    );
  } catch (thrown) {
    if (thrown instanceof AuthError) return false;
    throw thrown;
  }
}
