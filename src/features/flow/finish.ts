// The end of every login in the browser, by page or ticket: verifies it and continues the request, with the second
// factor if one is needed. The session is created when the browser returns to the authorization endpoint.
import type { Context } from 'koa';
import { loginRequirements } from '../../engine/admission/second-factor.ts';
import {
  type Answer,
  type PendingLink,
  type PendingOffer,
  requestExpired,
  type ShownWaitingRequest,
  type WaitingRequest,
  type WaitingRequests,
  waitingPath,
} from '../../engine/authorize/waiting-requests.ts';
import type { Settlement } from '../../engine/login/settle.ts';
import { AuthError } from '../../http/errors.ts';
import { type Clock, epochSeconds } from '../../runtime/clock.ts';
import { isUnattended, type Login, withSecondFactor } from '../../users/login.ts';

/** The second factor's page, below the path of the request. */
export const FACTOR_STEP = 'mfa';

/** The page that offers to link an account, below the path of the request. */
export const ACCOUNT_LINK_STEP = 'link';

/** The page with an offer after the login, below the path of the request. */
export const OFFER_STEP = 'offer';

/**
 * Returns what follows a complete login: the answer to the request, or a page that asks the user something first.
 */
export type AfterLogin = (
  ctx: Context,
  request: WaitingRequest,
  login: Login,
) => Promise<Answer | { link: PendingLink } | { offer: PendingOffer }>;

/** A second factor verified at its pages. */
type VerifiedFactor = Required<Pick<Login, 'userId' | 'amr' | 'acr'>>;

export interface Finish {
  /**
   * Completes the request with a login; a blocked user becomes an error at the application.
   * @throws AuthError 403 `invalid_grant` when the login is no longer valid (user removed, new password), or is by another
   *   connection than the request names.
   */
  login(ctx: Context, request: WaitingRequest, login: Login): Promise<void>;
  /**
   * Completes the request with a login that waited for something else. If it is no longer valid the application
   * gets an error, because asking for it again would loop.
   */
  resume(ctx: Context, request: WaitingRequest, login: Login): Promise<void>;
  /**
   * Completes the request with the second factor; sends the user back to the login page if the first factor is no
   * longer valid.
   * @throws AuthError 400 when the factor is another user's; 403 as {@link login}.
   */
  secondFactor(ctx: Context, factor: VerifiedFactor): Promise<void>;
}

interface FinishDependencies {
  waitingRequests: WaitingRequests;
  settle: Settlement;
  afterLogin: AfterLogin;
  /** The clock that dates logins. */
  wallClock: Clock;
}

export function createFinish({ waitingRequests, settle, afterLogin, wallClock }: FinishDependencies): Finish {
  /** Answers a refusal as an error at the application, or on the page if the user can correct it. */
  const refuse = async (ctx: Context, refusal: AuthError): Promise<void> => {
    const { error, error_description: description } = refusal;
    if (error === 'invalid_grant') throw refusal;
    await waitingRequests.answer(ctx, { error, description });
  };
  const end = async (ctx: Context, request: WaitingRequest, login: Login): Promise<void> => {
    // No passkey and no linked account are offered where nobody was there, because they would outlive the login.
    if (isUnattended(login)) return waitingRequests.answer(ctx, { login });
    const after = await afterLogin(ctx, request, login);
    const path = waitingPath(request.uid);
    if (typeof after === 'object' && 'link' in after) {
      await waitingRequests.storeLink(ctx, after.link);
      return ctx.redirect(`${path}/${ACCOUNT_LINK_STEP}`);
    }
    if (typeof after === 'object' && 'offer' in after) {
      await waitingRequests.storeOffer(ctx, after.offer);
      return ctx.redirect(`${path}/${OFFER_STEP}`);
    }
    await waitingRequests.answer(ctx, after);
  };
  /** As {@link refuse}, where no page is left on which the user could correct anything. */
  const refuseForGood = async (ctx: Context, refusal: AuthError): Promise<void> => {
    if (refusal.error !== 'invalid_grant') return refuse(ctx, refusal);
    await waitingRequests.answer(ctx, {
      error: 'access_denied',
      description: 'The login is no longer valid.',
    });
  };
  const decide = (ctx: Context, { clientId, params }: WaitingRequest, login: Login) =>
    settle.decide(login, { clientId, ...loginRequirements(params), browser: true, ctx });
  const complete = async (ctx: Context, request: WaitingRequest, login: Login): Promise<void> => {
    const decision = await decide(ctx, request, login);
    if (decision.is === 'refused') return refuse(ctx, decision.refusal);
    if (decision.is === 'complete') return end(ctx, request, login);
    await waitingRequests.storeFirstFactor(ctx, login);
    ctx.redirect(`${waitingPath(request.uid)}/${FACTOR_STEP}`);
  };
  return {
    login: complete,
    resume: async (ctx, request, login) => {
      try {
        await complete(ctx, request, login);
      } catch (thrown) {
        if (!(thrown instanceof AuthError) || thrown.error !== 'invalid_grant') throw thrown;
        await refuseForGood(ctx, thrown);
      }
    },
    secondFactor: async (ctx, { userId, amr, acr }) => {
      // Read again, because the request may have ended while the factor was verified.
      const request = await waitingRequests.shown(ctx);
      const { firstFactor } = request;
      if (firstFactor === undefined) return ctx.redirect(waitingPath(request.uid));
      if (firstFactor.userId !== userId) throw requestExpired();
      const factor = { amr, acr, authTime: epochSeconds(wallClock), ip: ctx.ip };
      const login = withSecondFactor(firstFactor, factor);
      const decision = await decide(ctx, request, login);
      if (decision.is === 'refused') return refuseForGood(ctx, decision.refusal);
      if (decision.is === 'incomplete') throw requestExpired();
      await end(ctx, request, login);
    },
  };
}

// Decides the next step of a waiting authorization request. It is decided only here.

/**
 * The steps: login, second factor, the offer to link an account, another offer (a passkey), account choice,
 * consent, the name of an organization, the choice of one, the redirect of an action, the login of the user whom an
 * action has named.
 */
type Step =
  | 'login'
  | 'factor'
  | 'link'
  | 'offer'
  | 'account'
  | 'consent'
  | 'organization_name'
  | 'organization'
  | 'redirect'
  | 'primary';

type RequestState = Pick<ShownWaitingRequest, 'prompt' | 'userId' | 'firstFactor' | 'link' | 'offer'>;

export function nextStep({ prompt, userId, firstFactor, link, offer }: RequestState): Step {
  if (prompt === 'consent' || prompt === 'organization_name' || prompt === 'organization') return prompt;
  if (prompt === 'redirect') return prompt;
  if (link?.isAccepted === false) return 'link';
  if (offer?.isAnswered === false) return 'offer';
  if (firstFactor !== undefined) return 'factor';
  if (prompt === 'primary') return prompt;
  return prompt === 'select_account' && userId !== undefined ? 'account' : 'login';
}

/** Whether the request accepts a login: also at the account choice, not at consent. */
export function waitsForLogin({ prompt }: Pick<RequestState, 'prompt'>): boolean {
  return prompt === 'login' || prompt === 'select_account';
}

/** Whether the user may keep the logged-in account, also after starting to log in to another. */
export function mayKeepAccount({ prompt, userId }: RequestState): boolean {
  return (
    nextStep({ prompt, userId, firstFactor: undefined, link: undefined, offer: undefined }) === 'account'
  );
}
