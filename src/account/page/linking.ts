// A second account of somebody at the page becomes a way in to theirs. Both are proved by a login of now: the first one by
// that at the page, the other one by a login that is asked for here. Nothing changes before both have been seen side by
// side and confirmed.
import type { Context } from 'koa';
import { admissionOf } from '../../engine/admission.ts';
import { isAdministratorId } from '../../records/administrators.ts';
import { mayBeAnothers } from '../../users/linking.ts';
import type { User } from '../../users/user.ts';
import { type Actor, FRESH_SECONDS, requireFreshLogin } from '../actor.ts';
import type { AccountLoginDependencies } from './login.ts';
import { actorOf, holds, type Kept, keptOf } from './session.ts';

export interface LinkingDependencies extends AccountLoginDependencies {
  /** Ends what a user had who has become an identity of another. */
  endLinked(userId: string): Promise<void>;
}

/** An account that was proved. */
type Proved = Actor & { connection: string };

/** Two accounts of one person: the one that stays, and the one that becomes a way in to it. */
export interface Pair {
  stays: Proved;
  goes: Proved;
}

const PURPOSE = 'account_link';

/** Whether somebody may link accounts here: an administrator is no user of the tenant's. */
export function allowsLinking(
  { config }: Pick<LinkingDependencies, 'config'>,
  { user }: { user: User },
): boolean {
  const { account_linking } = config.settings().tenant;
  return account_linking === 'suggest' && !isAdministratorId(user.id) && !mayBeAnothers(user);
}

/** Begins: keeps who is at the page. @returns what the login to the other account brings back; undefined for nobody. */
export async function beginLinking(deps: LinkingDependencies, ctx: Context): Promise<string | undefined> {
  const kept = await keptOf(deps, ctx);
  if (kept === undefined) return undefined;
  const { clientId, sid, login, factors } = kept;
  const stays: Kept = { clientId, sid, login, factors };
  const { secret } = await deps.challenges.issueTicket({
    purpose: PURPOSE,
    subject: sid,
    // It ends with the session, and with whatever takes back the user's other tickets. The login to the other account takes
    // the session's place in the browser, which ends neither.
    userId: login.userId,
    session: sid,
    ttlSeconds: FRESH_SECONDS,
    data: { stays },
  });
  if (await deps.sessions.isOpen(sid)) return secret;
  await deps.challenges.discard(PURPOSE, sid);
  return undefined;
}

/** The other account was proved: it is kept beside the first one until its user has confirmed. */
export async function keepSecond(deps: LinkingDependencies, ticket: string, goes: Kept): Promise<void> {
  await deps.challenges.keepWithTicket(PURPOSE, ticket, 'goes', goes);
}

/** The two accounts, as they are now; undefined where either proof no longer holds, or both are the same account. */
export async function pairOf(
  deps: LinkingDependencies,
  ctx: Context,
  ticket: string,
): Promise<Pair | undefined> {
  const met = await deps.challenges.peekTicket(PURPOSE, ticket);
  return met === undefined ? undefined : judged(deps, ctx, met.data);
}

/** Links them: of any number of racers one does. @returns the accounts; undefined as {@link pairOf}. */
export async function linkPair(
  deps: LinkingDependencies,
  ctx: Context,
  ticket: string,
): Promise<Pair | undefined> {
  const met = await deps.challenges.spendTicket(PURPOSE, ticket);
  const pair = met === undefined ? undefined : await judged(deps, ctx, met.data);
  if (pair === undefined) return undefined;
  if (!(await deps.users.link(pair.stays.user.id, pair.goes.user.id))) return undefined;
  await deps.endLinked(pair.goes.user.id);
  return pair;
}

async function judged(
  deps: LinkingDependencies,
  ctx: Context,
  { stays, goes }: Readonly<Record<string, unknown>>,
): Promise<Pair | undefined> {
  const first = await provedBy(deps, ctx, stays as Kept | undefined);
  const second = await provedBy(deps, ctx, goes as Kept | undefined);
  if (first === undefined || second === undefined || first.user.id === second.user.id) return undefined;
  // The first one's session ended with the login to the second account, in the same browser.
  if (!(await deps.sessions.isOpen(second.login.id))) return undefined;
  return { stays: first, goes: second };
}

/** Whose login it is, while it is recent, proves all that its account asks for, and nobody has shut them out. */
async function provedBy(
  deps: LinkingDependencies,
  ctx: Context,
  kept: Kept | undefined,
): Promise<Proved | undefined> {
  if (kept === undefined) return undefined;
  const { user, refusal } = await admissionOf(deps.users, kept.login);
  if (user === undefined || refusal !== undefined || !allowsLinking(deps, { user })) return undefined;
  const actor = actorOf(deps, ctx, { ...kept, user });
  const isFresh = await holds(requireFreshLogin(deps, actor));
  return isFresh ? { ...actor, connection: kept.login.connection } : undefined;
}
