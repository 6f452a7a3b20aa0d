// Single logout: what a LogoutRequest ends, and what the service provider that sent it is told.
import type { Context } from 'koa';
import type { Sessions } from '../engine/sessions.ts';
import type { Challenges } from '../protection/challenges.ts';
import type { Events } from '../tenant/events.ts';
import { open, type Received } from './bindings.ts';
import { type LogoutRequest, readLogoutRequest } from './logout-messages.ts';
import { type LogoutPropagationDependencies, reachable, wasComplete } from './logout-propagation.ts';
import { answerLogout, type LogoutAnswerDependencies, type Step, statusOf } from './logout-response.ts';
import { countOnce, type Expected, newId } from './message.ts';
import { NAME_ID, STATUS } from './names.ts';
import type { Status } from './response.ts';
import type { ServiceProvider } from './service-provider.ts';
import { type SamlSession, samlSessions } from './sessions.ts';
import { badMessage } from './xml.ts';

export interface SamlLogoutDependencies extends LogoutPropagationDependencies, LogoutAnswerDependencies {
  sessions: Sessions;
  challenges: Challenges;
  events: Events;
}

const PURPOSE = 'saml_logout';
const TTL = 900;

/** What is kept of a LogoutRequest until all parties of its session were told. */
interface Started {
  clientId: string;
  requestId: string;
  relayState?: string | undefined;
  sid: string;
  /** Sessions in other browsers had parties that cannot be told. */
  partial: boolean;
}

/**
 * Takes a LogoutRequest: the sessions it names end.
 * @throws AuthError 400 when it is not taken, or could not be answered.
 */
export async function takeLogoutRequest(
  deps: SamlLogoutDependencies,
  ctx: Context,
  provider: ServiceProvider,
  received: Received,
): Promise<Step> {
  const root = open(received, provider.verifier);
  const request = readLogoutRequest(root, expectation(deps, provider));
  const { relayState } = received;
  const browser = await deps.sessions.current(ctx);
  const named = await sessionsNamed(deps, provider, request, browser?.sid);
  // Of what anybody can say only that counts which ends something: the rest would only fill the store.
  if (provider.verifier !== undefined || (named ?? []).length > 0) {
    await countOnce(deps.store, deps.clock, provider.clientId, request.id);
  }
  const answer = (status: Status) =>
    answerLogout(deps, provider, { requestId: request.id, relayState }, status);
  if (named === undefined) return denied(provider, answer);
  const own = named.find(({ session_uid }) => session_uid === browser?.sid);
  const partial = await endElsewhere(
    deps,
    provider,
    named.filter((one) => one !== own),
  );
  recordLogout(deps, ctx, provider, named);
  if (own === undefined) return answer(statusOf(partial));
  const started: Started = {
    clientId: provider.clientId,
    requestId: request.id,
    relayState,
    sid: own.session_uid,
    partial,
  };
  return { redirect: await endHere(deps, ctx, provider, started) };
}

/** Somebody is logged in, but not whom the service provider means; in the hosted service's words. */
function denied(provider: ServiceProvider, answer: (status: Status) => Promise<Step>): Promise<Step> {
  const message = 'Invalid Session Participant';
  // Nothing has ended: a page that says the user is logged out would be wrong.
  if (provider.logoutUrl === undefined) throw badMessage(message);
  return answer({ code: STATUS.responder, message });
}

/** What a message about logout must be, to be ours. */
export function expectation(
  { idp, wallClock }: SamlLogoutDependencies,
  provider: ServiceProvider,
): Omit<Expected, 'name'> {
  return {
    destination: idp.addresses(provider.clientId).logout,
    destinationRequired: provider.verifier !== undefined,
    clock: wallClock,
  };
}

/**
 * The sessions that a request names. What is signed may end sessions of any browser; what is not, which anybody
 * could have written, only that of the browser that brings it.
 * @returns undefined when there is a session of this browser there, but the request does not name it.
 */
async function sessionsNamed(
  { store }: SamlLogoutDependencies,
  { clientId, verifier }: ServiceProvider,
  request: LogoutRequest,
  sid: string | undefined,
): Promise<SamlSession[] | undefined> {
  const sessions = samlSessions(store);
  const own = sid === undefined ? undefined : await sessions.find(clientId, sid);
  const candidates =
    verifier === undefined
      ? [own].filter((one) => one !== undefined)
      : await sessions.ofName(clientId, request.nameId);
  const named = candidates.filter((session) => isNamed(session, request));
  const missed = own !== undefined || candidates.length > 0;
  return named.length === 0 && missed ? undefined : named;
}

function isNamed({ id, issuer, name_id }: SamlSession, request: LogoutRequest): boolean {
  const { format } = request;
  return (
    (issuer === undefined || issuer === request.issuer) &&
    name_id.value === request.nameId &&
    (format === undefined || format === NAME_ID.unspecified || format === name_id.format) &&
    (request.sessionIndexes.length === 0 || request.sessionIndexes.includes(id))
  );
}

/** Ends sessions of other browsers. @returns whether parties of them could not be told. */
async function endElsewhere(
  deps: SamlLogoutDependencies,
  { clientId }: ServiceProvider,
  named: readonly SamlSession[],
): Promise<boolean> {
  const sessions = samlSessions(deps.store);
  const untold = await Promise.all(
    named.map(async ({ session_uid }) => {
      const parts = await sessions.ofSession(session_uid);
      const others = parts.filter(({ client_id }) => client_id !== clientId);
      const missed = (await reachable(deps.config, others)).length > 0;
      await deps.sessions.end(session_uid, { reason: 'rp-logout', startedBy: clientId });
      // A session that had expired is told to nobody.
      await sessions.takeAll(session_uid);
      return missed;
    }),
  );
  return untold.includes(true);
}

/** Ends this browser's session. @returns where it goes: to the other parties first, then back to be answered. */
async function endHere(
  deps: SamlLogoutDependencies,
  ctx: Context,
  { clientId }: ServiceProvider,
  started: Started,
): Promise<string> {
  const { secret } = await deps.challenges.issueTicket({
    purpose: PURPOSE,
    subject: newId(deps.random),
    ttlSeconds: TTL,
    data: { ...started },
  });
  const returnTo = `${deps.idp.addresses(clientId).logout}/done?state=${secret}`;
  deps.sessions.forget(ctx);
  const options = { reason: 'rp-logout', startedBy: clientId, browser: { returnTo } } as const;
  return (await deps.sessions.end(started.sid, options)) ?? returnTo;
}

function recordLogout(
  { events }: SamlLogoutDependencies,
  ctx: Context,
  { clientId }: ServiceProvider,
  [first]: readonly SamlSession[],
): void {
  if (first === undefined) return;
  events.record({
    type: 'slo',
    client_id: clientId,
    user_id: first.user_id,
    ip: ctx.ip,
    description: 'User successfully logged out',
  });
}

/** The end of a logout that a service provider began. @throws AuthError 400 when there is none, or no more. */
export async function finishLogout(
  deps: SamlLogoutDependencies,
  provider: ServiceProvider,
  state: string,
): Promise<Step> {
  const met = await deps.challenges.peekTicket(PURPOSE, state);
  const started = met?.data as unknown as Started | undefined;
  const isOwn = started?.clientId === provider.clientId;
  if (!isOwn || (await deps.challenges.spendTicket(PURPOSE, state)) === undefined) {
    throw badMessage('This logout has expired or is already done.');
  }
  const complete = await wasComplete(deps, started.sid);
  return answerLogout(deps, provider, started, statusOf(started.partial || !complete));
}
