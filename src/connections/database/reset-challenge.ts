// Actions of `password-reset-post-challenge`: they run when somebody comes by the link of a reset, before a new password can be
// set. What they allow holds for the form of that answer alone: who posts another, or none, has them run first.
import type { Context } from 'koa';
import type { Actions } from '../../actions/actions.ts';
import { clientOf, connectionOf, identityOf, userOf } from '../../actions/facts.ts';
import type { Progress } from '../../actions/progress.ts';
import { requestOf } from '../../engine/action-event.ts';
import { rolesOf } from '../../engine/login-event.ts';
import type { Organizations } from '../../engine/organizations.ts';
import type { SecondFactor } from '../../engine/second-factor.ts';
import { localeOf } from '../../engine/transaction-event.ts';
import type { Brought } from '../../engine/waiting-actions.ts';
import type { AwayUsers } from '../../flow/away.ts';
import { browserCookie } from '../../http/browser-cookie.ts';
import { AuthError } from '../../http/errors.ts';
import type { Challenges } from '../../protection/challenges.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Random } from '../../runtime/random.ts';
import { sha256 } from '../../runtime/secrets.ts';
import type { Store } from '../../store/contract.ts';
import type { Config } from '../../tenant/config.ts';
import type { Events } from '../../tenant/events.ts';
import type { Users } from '../../users/users.ts';
import type { OpenReset } from './reset.ts';
import { PASSWORD_RESET } from './reset-link.ts';

export interface ResetChallengeDependencies {
  actions: Pick<Actions, 'isBound' | 'run'>;
  away: AwayUsers;
  challenges: Challenges;
  config: Config;
  events: Events;
  organizations: Pick<Organizations, 'rolesOf'>;
  random: Random;
  store: Store;
  users: Users;
  secondFactor: Pick<SecondFactor, 'challenge' | 'enrolled' | 'standingOf'>;
  wallClock: Clock;
}

/** Where users come back to whom an action has sent elsewhere, or had give a second factor. */
export const RESET_RETURN = `${PASSWORD_RESET.path}/return` as const;

const TRIGGER = 'password-reset-post-challenge';

/** The link's ticket, while its user is elsewhere. */
const LINK = browserCookie('__Host-gatehouse_reset', { sameSite: 'lax', ttlSeconds: 3600 });

/** What is kept with the link's ticket. */
interface Kept {
  /** Hashes of what the forms have that were allowed: several windows may be open. */
  allowed: readonly string[];
  progress?: Progress;
  /** What they asked for last, by a name of its own: nothing that was brought for another lets them go on. */
  step?: string;
  /** The types of second factors that were given since they began to run. */
  given?: readonly string[];
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
 * @param returned what the user came back with, whom an action had sent elsewhere or asked for a second factor.
 * @returns what the form has to have; undefined when the browser was sent elsewhere.
 * @throws AuthError 403 `access_denied` when one refuses the reset, or fails.
 */
export async function challengeReset(
  deps: ResetChallengeDependencies,
  ctx: Context,
  { ticket, open, returned }: { ticket: string; open: OpenReset; returned?: Brought | undefined },
): Promise<string | undefined> {
  const { actions, challenges, random, secondFactor } = deps;
  if (!actions.isBound(TRIGGER)) return '';
  const { user, connection } = open;
  const kept = keptOf(open);
  const keep = (now: Kept) => challenges.keepWithTicket(PASSWORD_RESET.purpose, ticket, 'actions', now);
  const about = { user_id: user.id, user_name: user.email, connection: connection.name, ip: ctx.ip };
  const given = givenIn(kept, returned);
  const event = await eventOf(deps, ctx, open, given);
  const outcome = await actions.run(TRIGGER, event, about, {
    canRedirect: true,
    progress: progressOf(kept, event, returned),
    isGiven: async ({ types }) => types.some((type) => given.includes(type)),
  });
  const { denied, login } = outcome;
  const refuse = (description: string) => {
    const { user_name: name, ...others } = about;
    const seen = { ...others, ...(name !== undefined && { user_name: name }) };
    deps.events.record({ ...seen, type: 'fcp', description });
    return new AuthError(403, 'access_denied', description);
  };
  if (denied !== undefined) throw refuse(denied.reason);
  const step = random(16).toString('base64url');
  const back = { uid: uidOf(ticket), path: RESET_RETURN, step };
  const { redirect, factors } = login;
  if (redirect !== undefined || factors !== undefined) {
    const { progress } = outcome;
    await keep({ allowed: kept.allowed, given, step, ...(progress && { progress }) });
    LINK.give(ctx, ticket);
  }
  if (redirect !== undefined) {
    const url = new URL(redirect);
    url.searchParams.set('state', await deps.away.leave(ctx, { ...back, userId: user.id }));
    ctx.redirect(url.href);
    return undefined;
  }
  if (factors !== undefined) {
    if ((await secondFactor.standingOf(user, factors, [])) !== 'open') throw refuse(NOT_OFFERED);
    const { clientId } = clientOfReset(open);
    ctx.redirect(await secondFactor.challenge(ctx, { user, clientId, factors, back }));
    return undefined;
  }
  const proof = random(32).toString('base64url');
  const allowed = [sha256(proof), ...kept.allowed].slice(0, MOST_FORMS);
  await keep({ allowed, ...(login.resultUrl !== undefined && { resultUrl: login.resultUrl }) });
  return proof;
}

const NOT_OFFERED = 'A second factor is required that the user has not, or the tenant has not.';

/** The second factors that were given until now; none for who begins anew. */
function givenIn({ given = [] }: Kept, returned: Brought | undefined): readonly string[] {
  if (returned === undefined) return [];
  return 'factor' in returned ? [...given, returned.factor] : given;
}

/** Where the actions go on: from the start for who opens the link again. */
function progressOf(
  { progress }: Kept,
  { request }: Record<string, unknown>,
  returned: Brought | undefined,
): Progress | undefined {
  if (returned === undefined || progress === undefined) return undefined;
  return 'factor' in returned ? progress : { ...progress, request: { ...(request as object), ...returned } };
}

/** The application that a reset was asked for by, where it was one. */
function clientOfReset({ met: { data } }: OpenReset): { clientId: string | undefined } {
  return { clientId: typeof data.clientId === 'string' ? data.clientId : undefined };
}

/** The ticket of the link whose user this browser's was when they left; empty for none. */
export const leftReset = (ctx: Context): string => LINK.secret(ctx) ?? '';

/**
 * What the user of a reset is back with; once, and in the browser that they left with.
 * @param reset as it is gone on with: what the actions wait for must not be another by then.
 */
export async function broughtTo(
  { away }: Pick<ResetChallengeDependencies, 'away'>,
  ctx: Context,
  { ticket, open }: { ticket: string; open: OpenReset },
): Promise<Brought | undefined> {
  const { ticket: brought } = ctx.query;
  const { step } = keptOf(open);
  if (typeof brought !== 'string' || step === undefined) return undefined;
  return away.takeBrought(ctx, { uid: uidOf(ticket), step }, brought);
}

/** Stands for a link among users who are away. */
const uidOf = (ticket: string) => `reset-${sha256(ticket)}`;

async function eventOf(
  { config, organizations, secondFactor, store, users, wallClock }: ResetChallengeDependencies,
  ctx: Context,
  open: OpenReset,
  given: readonly string[],
): Promise<Record<string, unknown>> {
  const { user, connection } = open;
  const { clientId } = clientOfReset(open);
  const client = clientId === undefined ? undefined : await config.client(clientId);
  const [enrolledFactors, identities, roles] = await Promise.all([
    secondFactor.enrolled(user),
    users.identitiesOf(user.id),
    rolesOf({ store, organizations }, { user, organization: undefined }),
  ]);
  const timestamp = new Date(wallClock()).toISOString();
  const second = given.length > 0 ? [{ name: 'mfa', timestamp }] : [];
  return {
    user: { ...userOf(user), enrolledFactors, identities: identities.map(identityOf) },
    connection: connectionOf(connection),
    ...(client && { client: clientOf(client, client.client_id) }),
    request: requestOf(ctx, undefined),
    authorization: { roles: roles.map(({ name }) => name) },
    authentication: { methods: [{ name: 'email', timestamp }, ...second] },
    stats: { logins_count: user.logins_count ?? 0 },
    transaction: { locale: localeOf(config, ctx), ui_locales: [], metadata: {} },
  };
}
