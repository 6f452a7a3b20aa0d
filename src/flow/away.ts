// An action sends the user of a waiting request elsewhere, and the user comes back to /continue. The state that goes along is
// used once and in the browser alone that it was given to: who plants somebody else's gets nowhere.
import type { Context } from 'koa';
import { interactionPath, requestExpired } from '../engine/pending-interaction.ts';
import type { Brought, Return } from '../engine/waiting-actions.ts';
import { bodyTexts, textsOf } from '../http/body-fields.ts';
import { browserCookie } from '../http/browser-cookie.ts';
import { AuthError } from '../http/errors.ts';
import { PAGE, type RouteDeclarations } from '../http/routes.ts';
import type { Challenges } from '../protection/challenges.ts';
import { createWaitingList } from '../protection/waiting.ts';
import type { Clock } from '../runtime/clock.ts';
import type { Random } from '../runtime/random.ts';
import { sha256 } from '../runtime/secrets.ts';
import type { Events } from '../tenant/events.ts';
import { next } from './next.ts';
import { type HostedDependencies, openRequestPage, type RequestPage } from './request-page.ts';

/** Who leaves. */
interface Leaving {
  /** The id of the waiting request, or another name for what they were doing. */
  uid: string;
  /** The user with whose pending challenges this ends. Without it, it ends with the session of the request. */
  userId?: string;
  /** The path that they come back to, where it is not a page of a waiting request. */
  path?: string;
  /** Which of several actions in turn has sent them: what they bring back counts for that one alone. */
  step?: string;
}

/** The users whom actions have sent elsewhere. */
export interface AwayUsers {
  /** Notes that the user of a request leaves. @returns the state to come back with; an earlier one is void. */
  leave(ctx: Context, of: Leaving): Promise<string>;
  /**
   * Takes what the user of this browser came back with. Of any number of racers exactly one succeeds.
   * @returns the path where the request goes on; undefined when this browser has no such state.
   */
  comeBack(ctx: Context, state: string, brought: Return): Promise<string | undefined>;
  /** The same for a second factor that was given at our own pages. @returns the path where they go on. */
  bring(ctx: Context, of: Leaving & { path: string }, given: { factor: string }): Promise<string>;
  /** What was brought back to a request: given once, to its own browser. */
  takeBrought(ctx: Context, of: Pick<Leaving, 'uid' | 'step'>, ticket: string): Promise<Brought | undefined>;
}

export interface AwayDependencies extends HostedDependencies {
  away: AwayUsers;
  events: Events;
}

const AWAY = 'action_redirect';
const BROUGHT = 'action_return';
/** How long a user may be away, as a request waits; and how long what they brought waits for their browser; seconds. */
const TTL = 3600;
const BROUGHT_TTL = 120;
/** Characters of what is brought back. */
const MOST_BROUGHT = 16_384;
/** Limits on the states that wait, because every user can begin many logins. */
const WAITING = { most: 10_000, mostOfAddress: 600, ttlSeconds: TTL };

/** `None`: the page that the user was sent to may post what it has to say. */
const BROWSER = browserCookie('__Host-gatehouse_away', { sameSite: 'none' });

interface Kept extends Leaving {
  /** The hash of {@link BROWSER}'s secret. */
  browser: string;
}

/** Those of a tenant. */
export function awayUsers(deps: { challenges: Challenges; clock: Clock; random: Random }): AwayUsers {
  const { challenges, random } = deps;
  const waiting = createWaitingList(WAITING, deps.clock);
  const take = async <T>(ctx: Context, purpose: string, ticket: string) => {
    const kept = (await challenges.peekTicket<T & Kept>(purpose, ticket))?.data;
    // Looked at before it is used up: another browser cannot end a login that is not its own.
    if (kept === undefined || !BROWSER.bringsHashed(ctx, kept.browser)) return undefined;
    return (await challenges.spendTicket(purpose, ticket)) === undefined ? undefined : kept;
  };
  const issue = async (purpose: string, ttlSeconds: number, kept: Kept & { brought?: Brought }) => {
    const { uid: subject, userId } = kept;
    const issued = await challenges.issueTicket({ purpose, subject, ttlSeconds, userId, data: { ...kept } });
    return issued.secret;
  };
  return {
    leave: async (ctx, { uid, userId, path, step }) => {
      const gone = waiting.add(uid, ctx.ip);
      await Promise.all(gone.map((one) => challenges.discard(AWAY, one)));
      const browser = sha256(BROWSER.keep(ctx, random));
      const kept = {
        uid,
        browser,
        ...(userId !== undefined && { userId }),
        ...(path !== undefined && { path }),
        ...(step !== undefined && { step }),
      };
      return issue(AWAY, TTL, kept);
    },
    comeBack: async (ctx, state, brought) => {
      const kept = await take(ctx, AWAY, state);
      if (kept === undefined) return undefined;
      waiting.done(kept.uid);
      const ticket = await issue(BROUGHT, BROUGHT_TTL, { ...kept, brought });
      return `${kept.path ?? `/u/${kept.uid}/continue`}?ticket=${ticket}`;
    },
    bring: async (ctx, { userId, ...of }, brought) => {
      const browser = sha256(BROWSER.keep(ctx, random));
      const kept = { ...of, browser, brought, ...(userId !== undefined && { userId }) };
      return `${of.path}?ticket=${await issue(BROUGHT, BROUGHT_TTL, kept)}`;
    },
    takeBrought: async (ctx, { uid, step }, ticket) => {
      const met = await challenges.peekTicket(BROUGHT, ticket);
      if (met?.data.uid !== uid || met.data.step !== step) return undefined;
      return (await take<{ brought: Brought }>(ctx, BROUGHT, ticket))?.brought;
    },
  };
}

/** Sends the user of a request where an action wants them to go. */
export async function sendAway(
  { away }: AwayDependencies,
  ctx: Context,
  { pending: { uid, redirect = '' } }: RequestPage,
): Promise<void> {
  const url = new URL(redirect);
  url.searchParams.set('state', await away.leave(ctx, { uid }));
  ctx.set('Cache-Control', 'no-store');
  ctx.redirect(url.href);
}

/** The way back. */
export const awayRoutes: RouteDeclarations<AwayDependencies> = {
  'GET /continue': { ...PAGE, handle: comeBack },
  'POST /continue': { ...PAGE, handle: comeBack },
  'GET /u/:uid/continue': { ...PAGE, handle: goOn },
};

async function comeBack({ away, events }: AwayDependencies, ctx: Context): Promise<void> {
  ctx.set('Cache-Control', 'no-store');
  const brought = { method: ctx.method, query: textsOf(ctx.query), body: bodyTexts(ctx) };
  if (JSON.stringify(brought).length > MOST_BROUGHT)
    throw new AuthError(400, 'invalid_request', 'What was sent along is too long.');
  const state = brought.body.state ?? brought.query.state ?? '';
  const path = state === '' ? undefined : await away.comeBack(ctx, state, brought);
  if (path === undefined) {
    events.record({ type: 'f', ip: ctx.ip, description: NOBODY_AWAY });
    throw requestExpired();
  }
  // On at an address where the request's own cookies are, and with them whether it still waits.
  ctx.status = 303;
  ctx.redirect(path);
}

const NOBODY_AWAY = 'a state at /continue that no login of this browser waits for';

async function goOn(deps: AwayDependencies, ctx: Context): Promise<void> {
  const page = await openRequestPage(deps, ctx);
  const { ticket } = ctx.query;
  const returned =
    typeof ticket === 'string'
      ? await deps.away.takeBrought(ctx, { uid: page.pending.uid }, ticket)
      : undefined;
  if (returned === undefined || 'factor' in returned) throw requestExpired();
  // The user was linked to another meanwhile, and the request now waits for that one to log in.
  if (next(page.pending) !== 'redirect') return ctx.redirect(interactionPath(page.pending.uid));
  await deps.interactions.answer(ctx, { returned });
}
