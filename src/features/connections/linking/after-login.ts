// Account linking at the end of a login. A completed login has one of three results: it ends as usual; the user is offered to
// link the account to an existing one; or it is the login to that existing account, and the two accounts become one.
import type { Context } from 'koa';
import { reportLink } from '../../../capabilities/delivery/link-notice.ts';
import type { Messages } from '../../../capabilities/delivery/messages.ts';
import { admissionOf } from '../../../engine/admission.ts';
import type { Answer, PendingLink, WaitingRequest } from '../../../engine/pending-interaction.ts';
import { languagesOf } from '../../../http/languages.ts';
import type { Events } from '../../../tenant/events.ts';
import type { LinkedUsers } from '../../../users/linking.ts';
import type { Login } from '../../../users/login.ts';
import type { AfterLogin } from '../../flow/finish.ts';
import { type CandidateDependencies, candidateFor } from './candidate.ts';

interface LinkingDependencies extends CandidateDependencies {
  events: Events;
  messages: Messages;
  /** Ends the sessions, tokens and the like of a user whose account has become an identity of another user. */
  endLinked(userId: string): Promise<void>;
}

/** Returns the function that decides the result of a completed login ({@link AfterLogin}). */
export function linkAfterLogin(deps: LinkingDependencies): AfterLogin {
  return async (ctx, request, login) => {
    const { link } = request;
    if (link?.isAccepted === true) return linkAccounts(deps, ctx, request, { link, login });
    const candidate = await candidateFor(deps, request, login);
    return candidate === undefined ? { login } : { link: { ...candidate, login, isAccepted: false } };
  };
}

/**
 * Links the new account to the offered one, to which the user has now logged in as well, second factor included. The
 * conditions of the offer are checked again: they may have changed since, or another window may have linked the accounts.
 */
async function linkAccounts(
  deps: LinkingDependencies,
  ctx: Context,
  request: WaitingRequest,
  { link, login }: { link: PendingLink; login: Login },
): Promise<Answer | { link: PendingLink }> {
  if (login.userId !== link.userId) return { link: { ...link, isAccepted: false, isOther: true } };
  const { userId: newAccountId, connection } = link.login;
  let linked: LinkedUsers | undefined;
  const isLinked = await deps.users.link(link.userId, newAccountId, async (users) => {
    linked = users;
    const logins = await Promise.all([login, link.login].map((one) => admissionOf(deps.users, one)));
    if (logins.some(({ refusal }) => refusal !== undefined)) return false;
    return (await candidateFor(deps, request, link.login))?.userId === link.userId;
  });
  if (isLinked && linked !== undefined) {
    await deps.endLinked(newAccountId);
    const { clientId } = request;
    const facts = { clientId, connection, ip: login.ip, languages: languagesOf(ctx) };
    await reportLink(deps, linked, facts);
  } else if (!(await isIdentityOf(deps, link.userId, link.login))) {
    return { error: 'access_denied', description: 'The login is no longer valid.' };
  }
  // The session belongs to the new connection: the request may have named it, and a federated logout goes there.
  return { login: { ...login, connection } };
}

/** Whether a user has the identity of a login, because the accounts are linked already. */
async function isIdentityOf(
  { users }: LinkingDependencies,
  userId: string,
  { userId: accountId, connection }: Login,
): Promise<boolean> {
  const identities = await users.identitiesOf(userId);
  return identities.some(
    (one) => one.connection === connection && `${one.provider}|${one.upstream_id}` === accountId,
  );
}
