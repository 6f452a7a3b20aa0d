// Links a second account of a user to the first. The user proves both by a recent login: the first by that at the
// account page, the second by a login that is requested here. Nothing changes before the user has seen and
// confirmed both.
// docs/understand/decisions/users-linking.md#on-the-account-page-two-accounts-are-linked-by-two-fresh-logins
import type { Context } from 'koa';
import { admissionOf } from '../../../engine/admission/admission.ts';
import { isAdministratorId } from '../../../records/users/administrators.ts';
import { mayBelongToAnother } from '../../../users/linking.ts';
import { FRESH_SECONDS } from '../../../users/login.ts';
import type { User } from '../../../users/user.ts';
import { losesFactor } from '../../factors/policy.ts';
import { type Actor, requireLoginFor } from '../actor.ts';
import type { AccountLoginDependencies } from './account-login.ts';
import { type AccountSession, accountSessionOf, actorOfLogin, passes } from './account-session.ts';

export interface LinkingDependencies extends AccountLoginDependencies {
  endLinked(userId: string): Promise<void>;
}

type ProvedAccount = Actor & { connection: string };

/** Two accounts of one person: the one that stays, and the one that becomes an identity of it. */
export interface AccountPair {
  stays: ProvedAccount;
  goes: ProvedAccount;
}

const PURPOSE = 'account_link';

/** Returns whether a user may link accounts here. Administrators may not: they are not users of the tenant. */
export function allowsLinking(
  { config }: Pick<LinkingDependencies, 'config'>,
  { user }: { user: User },
): boolean {
  const { account_linking } = config.settings().tenant;
  return account_linking === 'suggest' && !isAdministratorId(user.id) && !mayBelongToAnother(user);
}

/** @returns the ticket that the login to the second account carries; undefined when nobody is logged in. */
export async function startLinking(deps: LinkingDependencies, ctx: Context): Promise<string | undefined> {
  const session = await accountSessionOf(deps, ctx);
  if (session === undefined) return undefined;
  const { clientId, sid, login, factors } = session;
  const stays: AccountSession = { clientId, sid, login, factors };
  const { secret } = await deps.challenges.issueTicket({
    purpose: PURPOSE,
    subject: sid,
    // The ticket ends with the session and with the user's other tickets. The login to the second account takes the
    // place of the session in the browser, but does not end it.
    userId: login.userId,
    session: sid,
    ttlSeconds: FRESH_SECONDS,
    data: { stays },
  });
  if (await deps.sessions.isOpen(sid)) return secret;
  await deps.challenges.discard(PURPOSE, sid);
  return undefined;
}

/** Stores the login to the second account until the user confirms. */
export async function storeSecondLogin(
  deps: LinkingDependencies,
  ticket: string,
  goes: AccountSession,
): Promise<void> {
  await deps.challenges.storeWithTicket(PURPOSE, ticket, 'goes', goes);
}

/** Returns the two accounts; undefined when either login is no longer valid, or both are the same account. */
export async function pairOf(
  deps: LinkingDependencies,
  ctx: Context,
  ticket: string,
): Promise<AccountPair | undefined> {
  const verifiedChallenge = await deps.challenges.peekTicket(PURPOSE, ticket);
  return verifiedChallenge === undefined ? undefined : validPair(deps, ctx, verifiedChallenge.data);
}

/** Of several concurrent calls one succeeds. @returns the accounts; undefined as {@link pairOf}. */
export async function linkPair(
  deps: LinkingDependencies,
  ctx: Context,
  ticket: string,
): Promise<AccountPair | undefined> {
  const verifiedChallenge = await deps.challenges.spendTicket(PURPOSE, ticket);
  const { stays, goes } = (verifiedChallenge?.data ?? {}) as Record<string, AccountSession | undefined>;
  if (stays === undefined || goes === undefined) return undefined;
  const linked: AccountPair[] = [];
  const isLinked = await deps.users.link(stays.login.userId, goes.login.userId, async () => {
    const pair = await validPair(deps, ctx, { stays, goes });
    linked.splice(0, 1, ...(pair === undefined ? [] : [pair]));
    return pair !== undefined;
  });
  if (!isLinked) return undefined;
  await deps.endLinked(goes.login.userId);
  return linked[0];
}

async function validPair(
  deps: LinkingDependencies,
  ctx: Context,
  { stays, goes }: Readonly<Record<string, unknown>>,
): Promise<AccountPair | undefined> {
  const first = await provedAccount(deps, ctx, stays as AccountSession | undefined);
  const second = await provedAccount(deps, ctx, goes as AccountSession | undefined);
  if (first === undefined || second === undefined || first.user.id === second.user.id) return undefined;
  // Only the second session can be required to be open: the same browser has replaced the first one with it.
  if (!(await deps.sessions.isOpen(second.login.id))) return undefined;
  if (await losesFactor(deps, { stays: first.user, goes: second.user })) return undefined;
  return { stays: first, goes: second };
}

/** Returns the account of a login that is recent, proves all that the account requires, and is not blocked. */
async function provedAccount(
  deps: LinkingDependencies,
  ctx: Context,
  session: AccountSession | undefined,
): Promise<ProvedAccount | undefined> {
  if (session === undefined) return undefined;
  const { user, refusal } = await admissionOf(deps.users, session.login);
  if (user === undefined || refusal !== undefined || !allowsLinking(deps, { user })) return undefined;
  const actor = actorOfLogin(ctx, { ...session, user });
  const isFresh = await passes(requireLoginFor(deps, actor, 'identity'));
  return isFresh ? { ...actor, connection: session.login.connection } : undefined;
}
