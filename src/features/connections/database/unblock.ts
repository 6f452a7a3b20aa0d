// Unlocks an account that was locked after failed logins: the mailed link and its page.
import type { Context } from 'koa';
import type { Deliveries } from '../../../capabilities/delivery/deliveries.ts';
import { deliveryEvents } from '../../../capabilities/delivery/delivery-declaration.ts';
import type { Messages } from '../../../capabilities/delivery/delivery-messages.ts';
import { DONE_PAGE, declarePage, type Views } from '../../../capabilities/pages/views.ts';
import type { Attempt, AttemptsDependencies, Lock } from '../../../capabilities/protection/attempt.ts';
import type { Attempts } from '../../../capabilities/protection/attempts.ts';
import type { Challenges } from '../../../capabilities/protection/challenges.ts';
import type { RateLimits } from '../../../capabilities/protection/rate-limit.ts';
import { addressKey } from '../../../http/addresses.ts';
import { linkExpired } from '../../../http/errors.ts';
import type { Limit } from '../../../http/limits.ts';
import { formFields } from '../../../http/server/body.ts';
import { nameBrowser } from '../../../http/server/browser-cookie.ts';
import type { Csrf } from '../../../http/server/csrf.ts';
import { PAGE, type RouteDeclarations } from '../../../http/server/router.ts';
import type { Random } from '../../../runtime/secrets.ts';
import type { Store, Write } from '../../../store/contract.ts';
import type { Config } from '../../../tenant/config.ts';
import type { Events } from '../../../tenant/events.ts';
import type { Users } from '../../../users/users.ts';
import { databaseEvents, databaseLimits } from './base/database-declaration.ts';

const PURPOSE = 'unblock';
const PATH = '/u/unblock';

interface LockNoticeDependencies {
  baseUrl: string;
  config: Config;
  users: Users;
  challenges: Challenges;
  messages: Messages;
  deliveries: Pick<Deliveries, 'add'>;
  store: Pick<Store, 'batch'>;
  events: Events;
  rateLimits: RateLimits;
}

/** A stored notice of a lock, until it was sent. */
interface StoredLock
  extends Pick<Attempt, 'connection' | 'identifier' | 'userId' | 'ip'>,
    Pick<Lock, 'lockedFor'> {}

/** Milliseconds between tries. Only the store can fail. */
const PAUSES = [1_000, 5_000, 30_000, 120_000];

/**
 * Returns the handler of locks. It mails the owner of a locked account a link that unlocks it, in the background, so that the
 * time does not reveal whether the account exists. When its promise resolves the notice is stored, even if there is no account.
 */
export function lockNotice(deps: LockNoticeDependencies): AttemptsDependencies['onLocked'] {
  const prepare = deps.deliveries.add<StoredLock>({
    kind: 'lock-notice',
    attempt: (lock, { done }) => sendLink(deps, lock, done),
    isTemporary: () => true,
    onGiveUp: async ({ connection, identifier, ip }) =>
      deps.events.record({
        type: deliveryEvents.fn,
        connection,
        user_name: identifier,
        ip,
        description: 'the owner of a locked account could not be told',
      }),
    pauses: PAUSES,
    maxDuration: 30_000,
    concurrency: 8,
    capacity: 2_000,
  });
  return async (attempt, { notify, lockedFor }) => {
    const { connection, identifier, userId, ip } = attempt;
    deps.events.record({
      type: databaseEvents.limit_wc,
      connection,
      user_name: identifier,
      ip,
      ...(userId !== undefined && { user_id: userId }),
    });
    if (!notify) return;
    const { write, start } = prepare({
      connection,
      identifier,
      ip,
      lockedFor,
      ...(userId !== undefined && { userId }),
    });
    await deps.store.batch([write]);
    start();
  };
}

/** @param done the write that marks the notice as sent. */
async function sendLink(
  deps: LockNoticeDependencies,
  { connection: name, userId, ip, lockedFor }: StoredLock,
  done: Write,
): Promise<void> {
  const user = userId === undefined ? undefined : await deps.users.get(userId);
  const { enabled, urlLifetimeInSeconds: ttlSeconds } = deps.messages.template('blocked_account');
  if (user?.email === undefined || !enabled) return;
  // An attacker can lock an account at will, so the mails to its owner are limited.
  const account = `${name}\n${user.id}`;
  const address = lockedFor === 'strangers' ? '' : addressKey(ip);
  const limits = spentLimits(account, address, lockedFor);
  if (!(await spendAll(deps.rateLimits, limits))) return;
  const connection = await deps.config.connection(name);
  const { secret, ref, save } = deps.challenges.prepareTicket({
    purpose: PURPOSE,
    // A lock caused by a stranger does not replace the link of another lock.
    subject: `${account}\n${address}`,
    userId: user.id,
    ttlSeconds,
    data: { connection: name },
  });
  const url = `${deps.baseUrl}${PATH}?ticket=${secret}`;
  const message = deps.messages.prepare(
    'blocked_account',
    { to: user.email, connection, user, url, ip },
    { ref, ttlSeconds },
  );
  try {
    await save([message.write, done]);
  } catch (error) {
    // The notice is tried again, and must not be refused by the limits that this try has spent.
    for (const [limit, key] of limits) await deps.rateLimits.giveBack(limit, key);
    throw error;
  }
  message.post();
}

type SpentLimit = readonly [limit: Limit, key: string];

/** Returns the limits for a lock. Locks for strangers have limits of their own and do not use up those of the owner. */
function spentLimits(account: string, address: string, lockedFor: Lock['lockedFor']): SpentLimit[] {
  if (lockedFor === 'strangers') return [[databaseLimits.lockNoticeEverywhere, account]];
  const addressLimit: SpentLimit = [databaseLimits.lockNotice, `${account}\n${address}`];
  return lockedFor === 'known' ? [addressLimit] : [addressLimit, [databaseLimits.lockNoticeAccount, account]];
}

/** Spends the limits in order. @returns false as soon as one is exhausted. */
async function spendAll(rateLimits: RateLimits, limits: readonly SpentLimit[]): Promise<boolean> {
  for (const [limit, key] of limits) if (!(await rateLimits.spend(limit, key))) return false;
  return true;
}

export interface UnblockDependencies {
  users: Users;
  challenges: Challenges;
  attempts: Attempts;
  views: Views;
  csrf: Csrf;
  random: Random;
}

/** The page of the link; it asks first, because mail scanners fetch links. */
export const unblockRoutes: RouteDeclarations<UnblockDependencies> = {
  'GET|HEAD /u/unblock': { ...PAGE, handle: askToUnblock },
  'POST /u/unblock': { ...PAGE, handle: unblock },
};

interface AccountUnblockModel {
  action: string;
  csrf: string;
  ticket: string | string[] | undefined;
}

export const ACCOUNT_UNBLOCK_PAGE = declarePage<AccountUnblockModel>('account/unblock');

async function askToUnblock({ challenges, views, csrf }: UnblockDependencies, ctx: Context): Promise<void> {
  const { ticket } = ctx.query;
  const open = typeof ticket === 'string' ? await challenges.peekTicket(PURPOSE, ticket) : undefined;
  if (open === undefined) throw linkExpired();
  await views.page(ctx, ACCOUNT_UNBLOCK_PAGE, { action: PATH, csrf: csrf.token(ctx), ticket });
}

async function unblock(
  { users, challenges, attempts, views, csrf, random }: UnblockDependencies,
  ctx: Context,
): Promise<void> {
  csrf.verify(ctx);
  const { ticket } = formFields(ctx, 'ticket');
  const verifiedChallenge = await challenges.spendTicket(PURPOSE, ticket);
  const user =
    verifiedChallenge?.userId === undefined ? undefined : await users.get(verifiedChallenge.userId);
  if (verifiedChallenge === undefined || user === undefined) throw linkExpired();
  const caller = { ip: ctx.ip, ...nameBrowser(ctx, random) };
  await attempts.unlock(String(verifiedChallenge.data.connection), user, caller);
  await views.page(ctx, DONE_PAGE, { done: 'unblock.done' });
}
