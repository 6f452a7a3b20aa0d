// Single logout that a service provider starts: which sessions its LogoutRequest ends, and the answer.
import type { Context } from 'koa';
import type { Challenges } from '../../capabilities/protection/challenges.ts';
import { type ReceivedMessage, verifyMessage } from '../../capabilities/saml-messages/bindings.ts';
import { type LogoutRequest, readLogoutRequest } from '../../capabilities/saml-messages/logout-messages.ts';
import { unspecified } from '../../capabilities/saml-messages/name-id.ts';
import { STATUS } from '../../capabilities/saml-messages/names.ts';
import { type ExpectedMessage, newId, refuseReplay } from '../../capabilities/saml-messages/saml-message.ts';
import type { Status } from '../../capabilities/saml-messages/status-response.ts';
import { badMessage } from '../../capabilities/saml-messages/xml.ts';
import { engineEvents } from '../../engine/base/engine-declaration.ts';
import type { Sessions } from '../../engine/session/sessions.ts';
import type { Events } from '../../tenant/events.ts';
import { finishPropagation, type LogoutPropagationDependencies, reachable } from './logout-propagation.ts';
import { answerLogout, type LogoutAnswerDependencies, type LogoutStep, statusOf } from './logout-response.ts';
import type { ServiceProvider } from './service-provider.ts';
import { type SamlSession, samlSessions } from './service-provider-sessions.ts';

export interface SamlLogoutDependencies extends LogoutPropagationDependencies, LogoutAnswerDependencies {
  sessions: Sessions;
  challenges: Challenges;
  events: Events;
}

const PURPOSE = 'saml_logout';
const TTL = 900;

/** A LogoutRequest that waits for the logout of the other participants. */
interface PendingLogout {
  clientId: string;
  requestId: string;
  relayState?: string | undefined;
  sid: string;
  /** Whether sessions in other browsers had participants that could not be reached. */
  partial: boolean;
}

/** @throws AuthError 400 when it is invalid, or there is nowhere to send the answer. */
export async function handleLogoutRequest(
  deps: SamlLogoutDependencies,
  ctx: Context,
  sp: ServiceProvider,
  received: ReceivedMessage,
): Promise<LogoutStep> {
  const root = verifyMessage(received, sp.verifier);
  const request = readLogoutRequest(root, expectation(deps, sp));
  const { relayState } = received;
  const browser = await deps.sessions.current(ctx);
  const namedSessions = await findNamedSessions(deps, sp, request, browser?.sid);
  // An unsigned request that ends nothing is not stored, because anybody could fill the store with them.
  if (sp.verifier !== undefined || (namedSessions ?? []).length > 0) {
    await refuseReplay(deps.store, deps.clock, sp.clientId, request.id);
  }
  const answer = (status: Status) => answerLogout(deps, sp, { requestId: request.id, relayState }, status);
  if (namedSessions === undefined) return refuseSession(sp, answer);
  const ownSession = namedSessions.find(({ session_uid }) => session_uid === browser?.sid);
  const partial = await endOtherBrowsers(
    deps,
    sp,
    namedSessions.filter((one) => one !== ownSession),
  );
  recordLogout(deps, ctx, sp, namedSessions);
  if (ownSession === undefined) return answer(statusOf(partial));
  const pendingLogout: PendingLogout = {
    clientId: sp.clientId,
    requestId: request.id,
    relayState,
    sid: ownSession.session_uid,
    partial,
  };
  return { redirect: await endThisBrowser(deps, ctx, sp, pendingLogout) };
}

/** Rejects a request that names another user than the session's. The message is the hosted service's. */
function refuseSession(
  sp: ServiceProvider,
  answer: (status: Status) => Promise<LogoutStep>,
): Promise<LogoutStep> {
  // docs/understand/decisions/saml.md#a-logoutrequest-for-a-session-that-has-ended-is-answered-with-success
  const message = 'Invalid Session Participant';
  // Nothing has ended, so the signed-out page would be wrong.
  if (sp.logoutUrl === undefined) throw badMessage(message);
  return answer({ code: STATUS.responder, message });
}

/** Returns what a logout message to us must satisfy. */
export function expectation(
  { idp, wallClock }: SamlLogoutDependencies,
  sp: ServiceProvider,
): Omit<ExpectedMessage, 'name'> {
  return {
    destination: idp.addresses(sp.clientId).logout,
    destinationRequired: sp.verifier !== undefined,
    clock: wallClock,
  };
}

/**
 * A signed request may end sessions in any browser; an unsigned one, which anybody can write, only that of the browser
 *   that sends it.
 * @returns undefined when there are sessions, but the request names none of them.
 */
async function findNamedSessions(
  { store }: SamlLogoutDependencies,
  { clientId, verifier }: ServiceProvider,
  request: LogoutRequest,
  sid: string | undefined,
): Promise<SamlSession[] | undefined> {
  const sessions = samlSessions(store);
  const ownSession = sid === undefined ? undefined : await sessions.find(clientId, sid);
  const candidates =
    verifier === undefined
      ? [ownSession].filter((one) => one !== undefined)
      : await sessions.findByName(clientId, request.nameId);
  const namedSessions = candidates.filter((session) => isNamed(session, request));
  const missed = ownSession !== undefined || candidates.length > 0;
  return namedSessions.length === 0 && missed ? undefined : namedSessions;
}

function isNamed({ id, issuer, name_id }: SamlSession, request: LogoutRequest): boolean {
  const { format } = request;
  return (
    (issuer === undefined || issuer === request.issuer) &&
    name_id.value === request.nameId &&
    (format === undefined || format === unspecified.uri || format === name_id.format) &&
    (request.sessionIndexes.length === 0 || request.sessionIndexes.includes(id))
  );
}

/** Ends sessions of other browsers. @returns whether some of their participants could not be reached. */
async function endOtherBrowsers(
  deps: SamlLogoutDependencies,
  { clientId }: ServiceProvider,
  namedSessions: readonly SamlSession[],
): Promise<boolean> {
  const sessions = samlSessions(deps.store);
  const unreached = await Promise.all(
    namedSessions.map(async ({ session_uid }) => {
      const participants = await sessions.findBySession(session_uid);
      const others = participants.filter(({ client_id }) => client_id !== clientId);
      const missed = (await reachable(deps.config, others)).length > 0;
      await deps.sessions.end(session_uid, { reason: 'rp-logout', startedBy: clientId });
      // The end of an expired session is not announced, so its participants are removed here.
      await sessions.takeAll(session_uid);
      return missed;
    }),
  );
  return unreached.includes(true);
}

/**
 * Ends this browser's session.
 * @returns where the browser goes: to the other participants, then back for the answer.
 */
async function endThisBrowser(
  deps: SamlLogoutDependencies,
  ctx: Context,
  { clientId }: ServiceProvider,
  pendingLogout: PendingLogout,
): Promise<string> {
  const { secret } = await deps.challenges.issueTicket({
    purpose: PURPOSE,
    subject: newId(deps.random),
    ttlSeconds: TTL,
    data: { ...pendingLogout },
  });
  const returnTo = `${deps.idp.addresses(clientId).logout}/done?state=${secret}`;
  deps.sessions.forget(ctx);
  const options = { reason: 'rp-logout', startedBy: clientId, browser: { returnTo } } as const;
  return (await deps.sessions.end(pendingLogout.sid, options)) ?? returnTo;
}

function recordLogout(
  { events }: SamlLogoutDependencies,
  ctx: Context,
  { clientId }: ServiceProvider,
  [first]: readonly SamlSession[],
): void {
  if (first === undefined) return;
  events.record({
    type: engineEvents.slo,
    client_id: clientId,
    user_id: first.user_id,
    ip: ctx.ip,
    description: 'User successfully logged out',
  });
}

/** @throws AuthError 400 when no such logout is in progress. */
export async function finishLogout(
  deps: SamlLogoutDependencies,
  sp: ServiceProvider,
  state: string,
): Promise<LogoutStep> {
  const verifiedChallenge = await deps.challenges.peekTicket<PendingLogout>(PURPOSE, state);
  const pendingLogout = verifiedChallenge?.data;
  const isOwn = pendingLogout?.clientId === sp.clientId;
  if (!isOwn || (await deps.challenges.spendTicket(PURPOSE, state)) === undefined) {
    throw badMessage('This logout has expired or is already done.');
  }
  const complete = await finishPropagation(deps, pendingLogout.sid);
  return answerLogout(deps, sp, pendingLogout, statusOf(pendingLogout.partial || !complete));
}
