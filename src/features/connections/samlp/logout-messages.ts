// Single logout messages from identity providers (SAML Profiles §4.4): ends the sessions that a LogoutRequest names, and
// answers it.
import type { Context } from 'koa';
import type { Views } from '../../../capabilities/pages/views.ts';
import type { Challenges } from '../../../capabilities/protection/challenges.ts';
import {
  type ReceivedMessage,
  sendByPost,
  sendByRedirect,
  verifyMessage,
} from '../../../capabilities/saml-messages/bindings.ts';
import {
  type LogoutRequest,
  readLogoutRequest,
  readLogoutResponse,
} from '../../../capabilities/saml-messages/logout-messages.ts';
import { STATUS } from '../../../capabilities/saml-messages/names.ts';
import { parseXml } from '../../../capabilities/saml-messages/reader.ts';
import { issuerOf, newId, refuseReplay } from '../../../capabilities/saml-messages/saml-message.ts';
import { signRoot } from '../../../capabilities/saml-messages/signature.ts';
import { statusResponse } from '../../../capabilities/saml-messages/status-response.ts';
import { badMessage, type XmlElement } from '../../../capabilities/saml-messages/xml.ts';
import { engineEvents } from '../../../engine/base/engine-declaration.ts';
import type { Sessions, UserSession } from '../../../engine/session/sessions.ts';
import { AuthError } from '../../../http/errors.ts';
import type { Connection } from '../../../records/collections.ts';
import { identityId } from '../../../records/connections/identities.ts';
import { epochSeconds } from '../../../runtime/clock.ts';
import type { Events } from '../../../tenant/events.ts';
import type { Users } from '../../../users/users.ts';
import type { UpstreamDependencies } from '../redirect.ts';
import { openSession } from '../redirect.ts';
import { isSaml, providerOf, type SamlProvider } from './provider.ts';
import { logoutId } from './samlp-logout.ts';
import { entityId, logoutUrl, signerOf } from './service-provider.ts';

export interface UpstreamLogoutDependencies extends UpstreamDependencies {
  challenges: Challenges;
  events: Events;
  sessions: Sessions;
  users: Users;
  views: Views;
  /** URL of our signed-out page. */
  signedOutPage: string;
}

/** A LogoutRequest that is answered when the applications of its session have been logged out. */
interface PendingAnswer {
  connection: string;
  requestId: string;
  binding: ReceivedMessage['binding'];
  relayState?: string | undefined;
}

const PURPOSE = 'saml_upstream_logout';
/** Seconds. */
const TTL = 900;

const expectation = (deps: UpstreamLogoutDependencies) => ({
  destination: logoutUrl(deps.baseUrl),
  destinationRequired: true,
  clock: deps.wallClock,
});

/**
 * Handles the LogoutResponse to a LogoutRequest of ours. An invalid one is recorded, but the logout continues: the session here
 * has ended already, and `state` is accepted only once.
 * @returns the path and query that the browser is sent to.
 */
export async function handleLogoutResponse(
  deps: UpstreamLogoutDependencies,
  ctx: Context,
  received: ReceivedMessage,
): Promise<string> {
  const state = received.relayState ?? '';
  try {
    const { root } = await senderOf(deps, received, undefined);
    const { isSuccess, inResponseTo } = readLogoutResponse(root, expectation(deps));
    if (inResponseTo !== logoutId(state)) throw badMessage('The LogoutResponse answers no request of ours.');
    if (!isSuccess) throw badMessage('The identity provider has not logged the user out.');
  } catch (thrown) {
    if (!(thrown instanceof AuthError)) throw thrown;
    deps.events.record({ type: engineEvents.flo, ip: ctx.ip, description: thrown.error_description });
  }
  return `/logout/callback?${new URLSearchParams({ state })}`;
}

/**
 * Handles a LogoutRequest: ends the session of this browser if the request names its user, or else the sessions of the named
 * user that the request is about.
 * @throws AuthError 400 if it is not valid.
 */
export async function handleLogoutRequest(
  deps: UpstreamLogoutDependencies,
  ctx: Context,
  received: ReceivedMessage,
): Promise<void> {
  const session = await deps.sessions.current(ctx);
  const message = await senderOf(deps, received, session?.connection);
  const { connection, root } = message;
  const request = readLogoutRequest(root, expectation(deps));
  await refuseReplay(deps.store, deps.clock, connection.id, request.id);
  const { relayState, binding } = received;
  const pendingAnswer = { connection: connection.name, requestId: request.id, binding, relayState };
  if (session === undefined || !(await isNamed(deps, connection, session, request))) {
    await endNamedSessions(deps, ctx, connection, request);
    return sendAnswer(deps, ctx, message, pendingAnswer);
  }
  recordLogout(deps, ctx, connection, session.userId);
  const { secret } = await deps.challenges.issueTicket({
    purpose: PURPOSE,
    subject: newId(deps.random),
    ttlSeconds: TTL,
    data: { ...pendingAnswer },
  });
  const returnTo = `${logoutUrl(deps.baseUrl)}/answer?state=${secret}`;
  deps.sessions.forget(ctx);
  const next = await deps.sessions.end(session.sid, { reason: 'idp-logout', browser: { returnTo } });
  ctx.set('Cache-Control', 'no-store');
  ctx.redirect(next ?? returnTo);
}

// docs/understand/decisions/saml.md#a-logoutrequest-of-an-identity-provider-ends-the-session-of-the-browser-that-brings-it
/**
 * Whether a request names the user of this browser's session, by the NameID of the session's login. The SessionIndex is not
 * compared: the browser that brings the request is the one whose session at the provider ends.
 */
async function isNamed(
  deps: UpstreamLogoutDependencies,
  connection: Connection,
  session: UserSession,
  { nameId }: LogoutRequest,
): Promise<boolean> {
  if (session.connection !== connection.name) return false;
  return (await providerSessionOf(deps, connection, session)).name_id === nameId;
}

/** Returns the NameID and SessionIndex of a session's login; if unknown, those of the user's last login at the provider. */
async function providerSessionOf(
  deps: UpstreamLogoutDependencies,
  { name }: Connection,
  { userId, providerSession }: Pick<UserSession, 'userId' | 'providerSession'>,
): Promise<Readonly<Record<string, string>>> {
  const session = await openSession(deps, name, providerSession);
  if (session !== undefined) return session;
  const identity = (await deps.users.identitiesOf(userId)).find(({ connection }) => connection === name);
  return identity?.upstream?.logout ?? {};
}

/**
 * Ends the sessions of the user whose id is the request's NameID, in every browser: all of them, or those of the SessionIndexes
 * that the request has (SAML Core §3.7.3.2).
 */
async function endNamedSessions(
  deps: UpstreamLogoutDependencies,
  ctx: Context,
  connection: Connection,
  { nameId, sessionIndexes }: LogoutRequest,
): Promise<void> {
  const id = identityId(connection.name, `${connection.name}|${nameId}`);
  const userId = (await deps.store.collection('identities').get(id))?.user_id;
  if (userId === undefined) return;
  if (sessionIndexes.length === 0) {
    await deps.sessions.endAllOf(userId, { reason: 'idp-logout', refreshTokens: false });
    return recordLogout(deps, ctx, connection, userId);
  }
  const sids: string[] = [];
  for (const session of await deps.sessions.of(userId)) {
    if (session.connection !== connection.name) continue;
    const { name_id, session_index = '' } = await providerSessionOf(deps, connection, session);
    if (name_id === nameId && sessionIndexes.includes(session_index)) sids.push(session.sid);
  }
  await Promise.all(sids.map((sid) => deps.sessions.end(sid, { reason: 'idp-logout' })));
  if (sids.length > 0) recordLogout(deps, ctx, connection, userId);
}

function recordLogout(
  { events }: UpstreamLogoutDependencies,
  ctx: Context,
  { name }: Connection,
  userId: string,
) {
  const description = 'User successfully logged out by the identity provider';
  events.record({ type: engineEvents.slo, connection: name, user_id: userId, ip: ctx.ip, description });
}

/** Answers the provider after the applications have been logged out. @throws AuthError 400 if no such logout is in progress. */
export async function finishLogout(
  deps: UpstreamLogoutDependencies,
  ctx: Context,
  state: string,
): Promise<void> {
  const verifiedChallenge = await deps.challenges.spendTicket<PendingAnswer>(PURPOSE, state);
  const pendingAnswer = verifiedChallenge?.data;
  const connection = pendingAnswer && (await deps.config.connection(pendingAnswer.connection));
  if (pendingAnswer === undefined || connection === undefined) {
    throw badMessage('This logout has expired or is already done.');
  }
  await sendAnswer(deps, ctx, { connection, provider: await providerOf(deps, connection) }, pendingAnswer);
}

/** Sends the LogoutResponse by the binding of the request. */
async function sendAnswer(
  deps: UpstreamLogoutDependencies,
  ctx: Context,
  { connection, provider }: Omit<VerifiedMessage, 'root'>,
  { requestId, relayState, binding }: PendingAnswer,
): Promise<void> {
  const { options, signOutResponse: destination } = provider;
  if (destination === undefined) return ctx.redirect(deps.signedOutPage);
  const id = newId(deps.random);
  const frame = {
    issuer: entityId(deps, connection, options),
    now: epochSeconds(deps.wallClock),
    inResponseTo: requestId,
    destination,
  };
  const { markup } = statusResponse('samlp:LogoutResponse', frame, id, { code: STATUS.success });
  const signer = await signerOf(deps, connection, options);
  const message = { kind: 'response', markup, relayState, location: destination } as const;
  if (binding === 'redirect') return sendByRedirect(ctx, message, signer);
  const name = connection.display_name ?? connection.name;
  return sendByPost(ctx, deps.views, { ...message, markup: await signRoot(markup, id, signer) }, { name });
}

// Finds the connection whose identity provider sent a message.

/** A message with a verified signature, and the connection whose provider sent it. */
interface VerifiedMessage {
  connection: Connection;
  provider: SamlProvider;
  root: XmlElement;
}

/**
 * Verifies a message and finds the connection whose provider signed it.
 * @param preferred the name of the connection that is tried first, because several may have the same provider.
 * @throws AuthError 400 if it is not signed by the provider of any connection.
 */
async function senderOf(
  deps: Pick<UpstreamDependencies, 'config' | 'samlMetadata'>,
  received: ReceivedMessage,
  preferred: string | undefined,
): Promise<VerifiedMessage> {
  const issuer = issuerOf(parseXml(received.text));
  const connections = (await deps.config.connections())
    .filter(isSaml)
    .sort((a, b) => Number(b.name === preferred) - Number(a.name === preferred));
  const candidates: Omit<VerifiedMessage, 'root'>[] = [];
  for (const connection of connections) {
    const provider = await providerOf(deps, connection).catch(refusal);
    if (provider?.signOut === undefined || (provider.issuer ?? issuer) !== issuer) continue;
    candidates.push({ connection, provider });
  }
  if (candidates.length === 0) throw unknownSender();
  // A stranger's message is verified once, however many connections there are, and not once for each.
  const verifiers = candidates.map(({ provider }) => provider.verifier);
  const anySender = {
    publicKeys: verifiers.flatMap(({ publicKeys }) => publicKeys),
    allowSha1: verifiers.some(({ allowSha1 }) => allowSha1),
  };
  try {
    verifyMessage(received, anySender);
  } catch (thrown) {
    refusal(thrown);
    throw unknownSender();
  }
  for (const candidate of candidates) {
    try {
      return { ...candidate, root: verifyMessage(received, candidate.provider.verifier) };
    } catch (thrown) {
      refusal(thrown);
    }
  }
  throw unknownSender();
}

/** Rethrows anything but a refusal. */
function refusal(thrown: unknown): undefined {
  if (!(thrown instanceof AuthError)) throw thrown;
}

function unknownSender(): AuthError {
  return badMessage(
    'The SAML message is of no identity provider that is known here, or is not signed by it.',
  );
}
