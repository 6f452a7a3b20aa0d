// The actions of the trigger `password-reset-post-challenge`. They run when the link of a reset is opened, before a new
// password can be set. The form they allow carries a proof; a form without a valid proof is sent back to the link, which runs
// them again.

import type { Context } from 'koa';
import type { Actions } from '../../../capabilities/actions/actions.ts';
import { clientOf, connectionOf, identityOf, userOf } from '../../../capabilities/actions/facts.ts';
import type { Progress } from '../../../capabilities/actions/progress.ts';
import type { Challenges } from '../../../capabilities/protection/challenges.ts';
import { requestOf } from '../../../engine/action-event.ts';
import { rolesOf } from '../../../engine/login-event.ts';
import type { Organizations } from '../../../engine/organizations.ts';
import type { SecondFactor } from '../../../engine/second-factor.ts';
import { localeOf } from '../../../engine/transaction-event.ts';
import type { ReturnResult } from '../../../engine/waiting-actions.ts';
import { browserCookie } from '../../../http/browser-cookie.ts';
import { AuthError } from '../../../http/errors.ts';
import { withParameters } from '../../../http/query.ts';
import type { Clock } from '../../../runtime/clock.ts';
import type { Random } from '../../../runtime/random.ts';
import { sha256 } from '../../../runtime/secrets.ts';
import type { Store } from '../../../store/contract.ts';
import type { Config } from '../../../tenant/config.ts';
import type { Events } from '../../../tenant/events.ts';
import type { Users } from '../../../users/users.ts';
import type { ActionRedirects } from '../../flow/action-redirects.ts';
import type { OpenReset } from './reset.ts';
import { PASSWORD_RESET } from './reset-link.ts';

export interface ResetChallengeDependencies {
  actions: Pick<Actions, 'isBound' | 'run'>;
  actionRedirects: ActionRedirects;
  challenges: Challenges;
  config: Config;
  events: Events;
  organizations: Pick<Organizations, 'rolesOf'>;
  random: Random;
  store: Store;
  users: Users;
  secondFactor: Pick<SecondFactor, 'challenge' | 'enrolledFactors' | 'availabilityOf'>;
  wallClock: Clock;
}

/** Path to which users return from the site that an action sent them to, or from a second factor. */
export const RESET_RETURN = `${PASSWORD_RESET.path}/return` as const;

const TRIGGER = 'password-reset-post-challenge';

/** The cookie that keeps the link's ticket while the user is at another site or gives a second factor. */
const TICKET_COOKIE = browserCookie('__Host-gatehouse_reset', { sameSite: 'lax', ttlSeconds: 3600 });

/** The state of the actions, stored with the link's ticket. */
interface ActionState {
  /** SHA-256 hashes of the proofs of allowed forms; several windows may be open. */
  allowed: readonly string[];
  progress?: Progress;
  /** Random id of the step that the actions wait for; the answer to any other step is not accepted. */
  step?: string;
  /** The types of the second factors given since the actions began. */
  given?: readonly string[];
  resultUrl?: string;
}

const MAX_FORMS = 5;

const actionStateOf = ({ verifiedChallenge }: OpenReset): ActionState => ({
  allowed: [],
  ...(verifiedChallenge.data.actions as object | undefined),
});

/** Returns the URL that an action set for the browser to go to after the reset. */
export function resultUrlOf(reset: OpenReset): string | undefined {
  return actionStateOf(reset).resultUrl;
}

/** Returns whether a form may set the password. @param proof the form's, from {@link challengeReset}. */
export function isAllowed(
  { actions }: Pick<ResetChallengeDependencies, 'actions'>,
  reset: OpenReset,
  proof: string,
): boolean {
  return !actions.isBound(TRIGGER) || actionStateOf(reset).allowed.includes(sha256(proof));
}

/**
 * Runs the actions.
 * @param returned what the user returned with from another site or a second factor; without it, the actions start anew.
 * @returns the proof for the form; undefined if the browser was redirected.
 * @throws AuthError 403 `access_denied` if an action refuses the reset, or fails.
 */
export async function challengeReset(
  deps: ResetChallengeDependencies,
  ctx: Context,
  { ticket, reset, returned }: { ticket: string; reset: OpenReset; returned?: ReturnResult | undefined },
): Promise<string | undefined> {
  const { actions, challenges, random, secondFactor } = deps;
  if (!actions.isBound(TRIGGER)) return '';
  const { user, connection } = reset;
  const state = actionStateOf(reset);
  const saveState = (next: ActionState) =>
    challenges.storeWithTicket(PASSWORD_RESET.purpose, ticket, 'actions', next);
  const details = { user_id: user.id, user_name: user.email, connection: connection.name, ip: ctx.ip };
  const givenFactors = givenFactorsOf(state, returned);
  const event = await eventOf(deps, ctx, reset, givenFactors);
  const outcome = await actions.run(TRIGGER, event, details, {
    canRedirect: true,
    progress: progressOf(state, event, returned),
    isVerified: async ({ types }) => types.some((type) => givenFactors.includes(type)),
  });
  const { denied, login } = outcome;
  const refuse = (description: string) => {
    const { user_name: name, ...others } = details;
    const logEvent = { ...others, ...(name !== undefined && { user_name: name }) };
    deps.events.record({ ...logEvent, type: 'fcp', description });
    return new AuthError(403, 'access_denied', description);
  };
  if (denied !== undefined) throw refuse(denied.reason);
  const step = random(16).toString('base64url');
  const back = { uid: uidOf(ticket), path: RESET_RETURN, step };
  const { redirect, factors } = login;
  if (redirect !== undefined || factors !== undefined) {
    const { progress } = outcome;
    await saveState({ allowed: state.allowed, given: givenFactors, step, ...(progress && { progress }) });
    TICKET_COOKIE.set(ctx, ticket);
  }
  if (redirect !== undefined) {
    const started = await deps.actionRedirects.start(ctx, { ...back, userId: user.id });
    ctx.redirect(withParameters(redirect, { state: started }));
    return undefined;
  }
  if (factors !== undefined) {
    if ((await secondFactor.availabilityOf(user, factors, [])) !== 'available')
      throw refuse(FACTOR_UNAVAILABLE);
    const { clientId } = clientOfReset(reset);
    ctx.redirect(await secondFactor.challenge(ctx, { user, clientId, factors, back }));
    return undefined;
  }
  const proof = random(32).toString('base64url');
  const allowed = [sha256(proof), ...state.allowed].slice(0, MAX_FORMS);
  await saveState({ allowed, ...(login.resultUrl !== undefined && { resultUrl: login.resultUrl }) });
  return proof;
}

const FACTOR_UNAVAILABLE = 'A second factor is required that the user has not, or the tenant has not.';

/** Returns the types of the second factors given so far. */
function givenFactorsOf({ given = [] }: ActionState, returned: ReturnResult | undefined): readonly string[] {
  if (returned === undefined) return [];
  return 'factor' in returned ? [...given, returned.factor] : given;
}

/** Returns where the actions continue; undefined if they start anew. */
function progressOf(
  { progress }: ActionState,
  { request }: Record<string, unknown>,
  returned: ReturnResult | undefined,
): Progress | undefined {
  if (returned === undefined || progress === undefined) return undefined;
  return 'factor' in returned ? progress : { ...progress, request: { ...(request as object), ...returned } };
}

/** Returns the id of the application that requested the reset, if any. */
function clientOfReset({ verifiedChallenge: { data } }: OpenReset): { clientId: string | undefined } {
  return { clientId: typeof data.clientId === 'string' ? data.clientId : undefined };
}

/** Returns the ticket of the link that this browser left from; the empty string if there is none. */
export const ticketOfBrowser = (ctx: Context): string => TICKET_COOKIE.secret(ctx) ?? '';

/**
 * Takes what the user of a reset returned with: once, and only in the browser that they left from.
 * @returns undefined if there is nothing, or if it answers an earlier step than the one that the actions wait for.
 */
export async function takeReturned(
  { actionRedirects }: Pick<ResetChallengeDependencies, 'actionRedirects'>,
  ctx: Context,
  { ticket, reset }: { ticket: string; reset: OpenReset },
): Promise<ReturnResult | undefined> {
  const { ticket: returnTicket } = ctx.query;
  const { step } = actionStateOf(reset);
  if (typeof returnTicket !== 'string' || step === undefined) return undefined;
  return actionRedirects.consumeReturn(ctx, { uid: uidOf(ticket), step }, returnTicket);
}

/** Returns the name of a link among the requests whose users were redirected. */
const uidOf = (ticket: string) => `reset-${sha256(ticket)}`;

async function eventOf(
  { config, organizations, secondFactor, store, users, wallClock }: ResetChallengeDependencies,
  ctx: Context,
  reset: OpenReset,
  givenFactors: readonly string[],
): Promise<Record<string, unknown>> {
  const { user, connection } = reset;
  const { clientId } = clientOfReset(reset);
  const client = clientId === undefined ? undefined : await config.client(clientId);
  const [enrolledFactors, identities, roles] = await Promise.all([
    secondFactor.enrolledFactors(user),
    users.identitiesOf(user.id),
    rolesOf({ store, organizations }, { user, organization: undefined }),
  ]);
  const timestamp = new Date(wallClock()).toISOString();
  const mfaMethods = givenFactors.length > 0 ? [{ name: 'mfa', timestamp }] : [];
  return {
    user: { ...userOf(user), enrolledFactors, identities: identities.map(identityOf) },
    connection: connectionOf(connection),
    ...(client && { client: clientOf(client, client.client_id) }),
    request: requestOf(ctx, undefined),
    authorization: { roles: roles.map(({ name }) => name) },
    authentication: { methods: [{ name: 'email', timestamp }, ...mfaMethods] },
    stats: { logins_count: user.logins_count ?? 0 },
    transaction: { locale: localeOf(config, ctx), ui_locales: [], metadata: {} },
  };
}
