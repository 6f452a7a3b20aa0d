// An action redirects the user of a waiting request to another site, and the user returns to /continue. The `state`
// of the redirect is used once, and only in the browser that got it: nobody can make another browser use their
// state.

import type { Context } from 'koa';
import type { Challenges } from '../../capabilities/protection/challenges.ts';
import { requestExpired, waitingPath } from '../../engine/authorize/waiting-requests.ts';
import { engineEvents } from '../../engine/base/engine-declaration.ts';
import type { ReturnRequest, ReturnResult } from '../../engine/login/login-actions.ts';
import { AuthError } from '../../http/errors.ts';
import { bodyTexts, textsOf, withParameters } from '../../http/server/body.ts';
import { browserCookie } from '../../http/server/browser-cookie.ts';
import { PAGE, type RouteDeclarations } from '../../http/server/router.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Random } from '../../runtime/secrets.ts';
import { sha256 } from '../../runtime/secrets.ts';
import type { Events } from '../../tenant/events.ts';
import { nextStep } from './finish.ts';
import { type HostedDependencies, openRequestPage, type RequestPage } from './request-page.ts';

interface RedirectContext {
  /** The id of the waiting request, or another identifier of what the user was doing. */
  uid: string;
  /**
   * The user with whose pending challenges the redirect ends. Without it, the redirect ends with the session of the
   * request.
   */
  userId?: string;
  /** The path where the user continues, when it is not a page of a waiting request. */
  path?: string;
  /** Which of several actions has redirected the user: what the user returns with counts only for that one. */
  step?: string;
}

// docs/understand/decisions/actions-scripts.md#a-redirect-by-an-action-can-be-continued-only-by-the-browser-that-was-redirected
export interface ActionRedirects {
  /** @returns the `state` to return with; an earlier one becomes invalid. */
  start(ctx: Context, of: RedirectContext): Promise<string>;
  /**
   * Accepts the request with which the user of this browser returns. Of any number of concurrent calls exactly one
   * succeeds.
   * @returns the path where the request continues; undefined when this browser has no such state.
   */
  finish(ctx: Context, state: string, returned: ReturnRequest): Promise<string | undefined>;
  /** Accepts a second factor that was given at our own pages. @returns the path where the user continues. */
  finishWithFactor(
    ctx: Context,
    of: RedirectContext & { path: string },
    factor: { factor: string },
  ): Promise<string>;
  /** Returns what the user of a request has returned with, once, and only in its browser. */
  consumeReturn(
    ctx: Context,
    of: Pick<RedirectContext, 'uid' | 'step'>,
    ticket: string,
  ): Promise<ReturnResult | undefined>;
}

export interface ActionRedirectDependencies extends HostedDependencies {
  actionRedirects: ActionRedirects;
  events: Events;
}

const REDIRECT = 'action_redirect';
const RETURNED = 'action_return';
/**
 * How long a user may take to return, which is as long as a request waits, and how long what they return with is
 * kept for their browser; seconds.
 */
const TTL = 3600;
const RETURNED_TTL = 120;
/** The most characters that a user may return with. */
const MAX_RETURNED_LENGTH = 16_384;

/** `None`, because the other site may send the user back by a POST. */
const BROWSER = browserCookie('__Host-gatehouse_away', { sameSite: 'none' });

interface StoredRedirect extends RedirectContext {
  /** The hash of {@link BROWSER}'s secret. */
  browser: string;
}

export function actionRedirects(deps: {
  challenges: Challenges;
  clock: Clock;
  random: Random;
}): ActionRedirects {
  const { challenges, random } = deps;
  const consume = async <T>(ctx: Context, purpose: string, ticket: string) => {
    const stored = (await challenges.peekTicket<T & StoredRedirect>(purpose, ticket))?.data;
    // Checked before it is used up, so that another browser cannot end a login that is not its own.
    if (stored === undefined || !BROWSER.matchesHash(ctx, stored.browser)) return undefined;
    return (await challenges.spendTicket(purpose, ticket)) === undefined ? undefined : stored;
  };
  const issue = async (
    purpose: string,
    ttlSeconds: number,
    stored: StoredRedirect & { brought?: ReturnResult },
  ) => {
    const { uid: subject, userId } = stored;
    const issued = await challenges.issueTicket({
      purpose,
      subject,
      ttlSeconds,
      userId,
      isWaiting: true,
      data: { ...stored },
    });
    return issued.secret;
  };
  return {
    start: async (ctx, { uid, userId, path, step }) => {
      const browser = sha256(BROWSER.ensure(ctx, random));
      const stored = {
        uid,
        browser,
        ...(userId !== undefined && { userId }),
        ...(path !== undefined && { path }),
        ...(step !== undefined && { step }),
      };
      return issue(REDIRECT, TTL, stored);
    },
    finish: async (ctx, state, brought) => {
      const stored = await consume(ctx, REDIRECT, state);
      if (stored === undefined) return undefined;
      const ticket = await issue(RETURNED, RETURNED_TTL, { ...stored, brought });
      return `${stored.path ?? `/u/${stored.uid}/continue`}?ticket=${ticket}`;
    },
    finishWithFactor: async (ctx, { userId, ...of }, brought) => {
      const browser = sha256(BROWSER.ensure(ctx, random));
      const stored = { ...of, browser, brought, ...(userId !== undefined && { userId }) };
      return `${of.path}?ticket=${await issue(RETURNED, RETURNED_TTL, stored)}`;
    },
    consumeReturn: async (ctx, { uid, step }, ticket) => {
      const challenge = await challenges.peekTicket(RETURNED, ticket);
      if (challenge?.data.uid !== uid || challenge.data.step !== step) return undefined;
      return (await consume<{ brought: ReturnResult }>(ctx, RETURNED, ticket))?.brought;
    },
  };
}

/** Redirects the user of a request to the URL that an action has set. */
export async function redirectForAction(
  { actionRedirects }: ActionRedirectDependencies,
  ctx: Context,
  { waiting: { uid, redirect = '' } }: RequestPage,
): Promise<void> {
  const state = await actionRedirects.start(ctx, { uid });
  ctx.set('Cache-Control', 'no-store');
  ctx.redirect(withParameters(redirect, { state }));
}

export const actionRedirectRoutes: RouteDeclarations<ActionRedirectDependencies> = {
  'GET /continue': { ...PAGE, handle: acceptReturn },
  'POST /continue': { ...PAGE, handle: acceptReturn },
  'GET /u/:uid/continue': { ...PAGE, handle: resumeRequest },
};

async function acceptReturn(
  { actionRedirects, events }: ActionRedirectDependencies,
  ctx: Context,
): Promise<void> {
  ctx.set('Cache-Control', 'no-store');
  const returned = { method: ctx.method, query: textsOf(ctx.query), body: bodyTexts(ctx) };
  if (JSON.stringify(returned).length > MAX_RETURNED_LENGTH)
    throw new AuthError(400, 'invalid_request', 'What was sent along is too long.');
  const state = returned.body.state ?? returned.query.state ?? '';
  const path = state === '' ? undefined : await actionRedirects.finish(ctx, state, returned);
  if (path === undefined) {
    events.record({ type: engineEvents.f, ip: ctx.ip, description: UNKNOWN_STATE });
    throw requestExpired();
  }
  // Continues at a path with the request's own cookies, where it is checked whether the request still waits.
  ctx.status = 303;
  ctx.redirect(path);
}

const UNKNOWN_STATE = 'a state at /continue that no login of this browser waits for';

async function resumeRequest(deps: ActionRedirectDependencies, ctx: Context): Promise<void> {
  const page = await openRequestPage(deps, ctx);
  const { ticket } = ctx.query;
  const returned =
    typeof ticket === 'string'
      ? await deps.actionRedirects.consumeReturn(ctx, { uid: page.waiting.uid }, ticket)
      : undefined;
  if (returned === undefined || 'factor' in returned) throw requestExpired();
  // The user was linked to another one meanwhile, and the request now waits for that user's login.
  if (nextStep(page.waiting) !== 'redirect') return ctx.redirect(waitingPath(page.waiting.uid));
  await deps.waitingRequests.answer(ctx, { returned });
}
