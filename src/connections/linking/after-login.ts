// What becomes of a login that is complete, where accounts may be linked: it ends, or its user is asked, or it is the
// second of two proofs and both accounts become one.
import type { Answer, PendingLink, WaitingRequest } from '../../engine/pending-interaction.ts';
import type { AfterLogin } from '../../flow/finish.ts';
import type { Events } from '../../tenant/events.ts';
import type { Login } from '../../users/login.ts';
import { type CandidateDependencies, candidateFor } from './candidate.ts';

interface LinkingDependencies extends CandidateDependencies {
  events: Events;
  /** Ends what a user had who has become an identity of another. */
  endLinked(userId: string): Promise<void>;
}

/** @see AfterLogin */
export function linkAfterLogin(deps: LinkingDependencies): AfterLogin {
  return async (_ctx, request, login) => {
    const { link } = request;
    if (link?.isAccepted === true) return second(deps, request, link, login);
    const candidate = await candidateFor(deps, request, login);
    return candidate === undefined ? { login } : { link: { ...candidate, login, isAccepted: false } };
  };
}

/**
 * The account that was offered has been proved, as completely as for any login. What made it an offer is asked again: time
 * has gone by, and another window of the same person may have been sooner.
 */
async function second(
  deps: LinkingDependencies,
  request: WaitingRequest,
  link: PendingLink,
  login: Login,
): Promise<Answer | { link: PendingLink }> {
  if (login.userId !== link.userId) return { link: { ...link, isAccepted: false, isOther: true } };
  const { userId: gone, connection } = link.login;
  const candidate = await candidateFor(deps, request, link.login);
  const isLinked = candidate?.userId === link.userId && (await deps.users.link(link.userId, gone));
  if (isLinked) {
    await deps.endLinked(gone);
    const about = { client_id: request.clientId, connection, user_id: link.userId, ip: login.ip };
    deps.events.record({ ...about, type: 'account_linked', description: gone });
  } else if (!(await isIdentityOf(deps, link.userId, link.login))) {
    return { error: 'access_denied', description: 'The login is no longer valid.' };
  }
  // They came by the new connection: that is what the request may have asked for, and where a logout goes.
  return { login: { ...login, connection } };
}

/** Whether a login's identity has become one of a user's. */
async function isIdentityOf(
  { users }: LinkingDependencies,
  userId: string,
  { userId: before, connection }: Login,
): Promise<boolean> {
  const identities = await users.identitiesOf(userId);
  return identities.some(
    (one) => one.connection === connection && `${one.provider}|${one.upstream_id}` === before,
  );
}
