// Actions of `password-reset-post-challenge`: they run when somebody comes by the link of a reset, before a new password can be
// set. What they allow holds for the form of that answer alone: who posts another, or none, has them run first.
import type { Context } from 'koa';
import type { Actions } from '../../actions/actions.ts';
import { clientOf, connectionOf, userOf } from '../../actions/facts.ts';
import type { Progress } from '../../actions/progress.ts';
import { requestOf } from '../../engine/action-event.ts';
import type { SecondFactor } from '../../engine/second-factor.ts';
import type { Return } from '../../engine/waiting-actions.ts';
import type { AwayUsers } from '../../flow/away.ts';
import { browserCookie } from '../../http/browser-cookie.ts';
import { AuthError } from '../../http/errors.ts';
import type { Challenges } from '../../protection/challenges.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Random } from '../../runtime/random.ts';
import { sha256 } from '../../runtime/secrets.ts';
import type { Config } from '../../tenant/config.ts';
import type { Events } from '../../tenant/events.ts';
import type { OpenReset } from './reset.ts';
import { PASSWORD_RESET } from './reset-link.ts';

export interface ResetChallengeDependencies {
  actions: Pick<Actions, 'isBound' | 'run'>;
  away: AwayUsers;
  challenges: Challenges;
  config: Config;
  events: Events;
  random: Random;
  secondFactor: Pick<SecondFactor, 'enrolled'>;
  wallClock: Clock;
}

/** Where users come back to whom an action has sent elsewhere. */
export const RESET_RETURN = `${PASSWORD_RESET.path}/return` as const;

const TRIGGER = 'password-reset-post-challenge';

/** The link's ticket, while its user is elsewhere. */
const LINK = browserCookie('__Host-gatehouse_reset', { sameSite: 'lax', ttlSeconds: 3600 });

/** What is kept with the link's ticket. */
interface Kept {
  /** Hashes of what the forms have that were allowed: several windows may be open. */
  allowed: readonly string[];
  progress?: Progress;
  resultUrl?: string;
}

const MOST_FORMS = 5;

const keptOf = ({ met }: OpenReset): Kept => ({ allowed: [], ...(met.data.actions as object | undefined) });

/** Where an action said that the browser goes when the password is set. */
export function resultUrlOf(open: OpenReset): string | undefined {
  return keptOf(open).resultUrl;
}

/** Whether a form was allowed to set the password. @param proof what it has of {@link challengeReset}. */
export function isAllowed(
  { actions }: Pick<ResetChallengeDependencies, 'actions'>,
  open: OpenReset,
  proof: string,
): boolean {
  return !actions.isBound(TRIGGER) || keptOf(open).allowed.includes(sha256(proof));
}

/**
 * Runs the actions.
 * @param returned what the user came back with, whom an action had sent elsewhere.
 * @returns what the form has to have; undefined when the browser was sent elsewhere.
 * @throws AuthError 403 `access_denied` when one refuses the reset, or fails.
 */
export async function challengeReset(
  deps: ResetChallengeDependencies,
  ctx: Context,
  { ticket, open, returned }: { ticket: string; open: OpenReset; returned?: Return | undefined },
): Promise<string | undefined> {
  const { actions, challenges, random } = deps;
  if (!actions.isBound(TRIGGER)) return '';
  const { user, connection } = open;
  const kept = keptOf(open);
  const keep = (now: Kept) => challenges.keepWithTicket(PASSWORD_RESET.purpose, ticket, 'actions', now);
  const about = { user_id: user.id, user_name: user.email, connection: connection.name, ip: ctx.ip };
  const event = await eventOf(deps, ctx, open);
  const request = returned && { ...(event.request as object), ...returned };
  const progress = request && kept.progress && { ...kept.progress, request };
  const outcome = await actions.run(TRIGGER, event, about, { canRedirect: true, progress });
  const { denied, login } = outcome;
  if (denied !== undefined) {
    const { user_name: name, ...others } = about;
    const seen = { ...others, ...(name !== undefined && { user_name: name }) };
    deps.events.record({ ...seen, type: 'fcp', description: denied.reason });
    throw new AuthError(403, 'access_denied', denied.reason);
  }
  if (login.redirect !== undefined) {
    await keep({ ...kept, ...(outcome.progress && { progress: outcome.progress }) });
    LINK.give(ctx, ticket);
    const url = new URL(login.redirect);
    const away = { uid: uidOf(ticket), userId: user.id, path: RESET_RETURN };
    url.searchParams.set('state', await deps.away.leave(ctx, away));
    ctx.redirect(url.href);
    return undefined;
  }
  const proof = random(32).toString('base64url');
  const allowed = [sha256(proof), ...kept.allowed].slice(0, MOST_FORMS);
  await keep({ allowed, ...(login.resultUrl !== undefined && { resultUrl: login.resultUrl }) });
  return proof;
}

/** The reset whose user is back, with what they brought; once, and in the browser that they left with. */
export async function returnedReset(
  { away }: Pick<ResetChallengeDependencies, 'away'>,
  ctx: Context,
): Promise<{ ticket: string; returned: Return } | undefined> {
  const ticket = LINK.secret(ctx);
  const { ticket: brought } = ctx.query;
  if (ticket === undefined || typeof brought !== 'string') return undefined;
  const returned = await away.takeBrought(ctx, uidOf(ticket), brought);
  return returned && { ticket, returned };
}

/** Stands for a link among users who are away. */
const uidOf = (ticket: string) => `reset-${sha256(ticket)}`;

async function eventOf(
  {
    config,
    secondFactor,
    wallClock,
  }: Pick<ResetChallengeDependencies, 'config' | 'secondFactor' | 'wallClock'>,
  ctx: Context,
  { user, connection, met }: OpenReset,
): Promise<Record<string, unknown>> {
  const { clientId } = met.data;
  const client = typeof clientId === 'string' ? await config.client(clientId) : undefined;
  const timestamp = new Date(wallClock()).toISOString();
  return {
    user: { ...userOf(user), enrolledFactors: await secondFactor.enrolled(user) },
    connection: connectionOf(connection),
    ...(client && { client: clientOf(client, client.client_id) }),
    request: requestOf(ctx, undefined),
    authentication: { methods: [{ name: 'email', timestamp }] },
    stats: { logins_count: user.logins_count ?? 0 },
    transaction: { metadata: {} },
  };
}
