// The end of a login in the browser, whatever page or ticket it came by: it is judged, and the request goes on, to the
// second factor where one is due. The session is made of it when the browser comes back to the authorization endpoint.
import type { Context } from 'koa';
import {
  type Interactions,
  interactionPath,
  requestExpired,
  type WaitingRequest,
} from '../engine/interaction.ts';
import type { Settle } from '../engine/settle.ts';
import { wantedOf } from '../engine/step-up.ts';
import type { AuthError } from '../http/errors.ts';
import { type Clock, epochSeconds } from '../runtime/clock.ts';
import { type Login, withSecondFactor } from '../users/login.ts';

/** The second factor's page, below the request's. */
export const FACTOR_STEP = 'mfa';

/** A second factor that was given at its pages. */
export type GivenFactor = Required<Pick<Login, 'userId' | 'amr' | 'acr'>>;

export interface Finish {
  /**
   * The user has logged in: the request goes on. A user who may not come in is sent back as an error.
   * @throws AuthError 403 `invalid_grant` when the login does not hold any more: the user is gone, or has a new
   *   password since; or when the request names another connection than the login came by.
   */
  login(ctx: Context, request: WaitingRequest, login: Login): Promise<void>;
  /**
   * The user who has given the first factor has given the second, too: the request goes on; where the first
   * factor does not hold any more, to the page that asks for it.
   * @throws AuthError 400 when it was somebody else's; 403 as {@link login}.
   */
  secondFactor(ctx: Context, given: GivenFactor): Promise<void>;
}

export interface FinishDependencies {
  interactions: Interactions;
  settle: Settle;
  /** What logins are dated by. */
  wallClock: Clock;
}

/** The end of the tenant's logins in the browser. */
export function createFinish({ interactions, settle, wallClock }: FinishDependencies): Finish {
  /** As an error at the application, or, where it can be mended, on the page. */
  const refuse = async (ctx: Context, refusal: AuthError): Promise<void> => {
    const { error, error_description: description } = refusal;
    if (error === 'invalid_grant') throw refusal;
    await interactions.answer(ctx, { error, description });
  };
  const judge = (ctx: Context, { clientId, params }: WaitingRequest, login: Login) =>
    settle.judge(login, { clientId, ...wantedOf(params), browser: true, ctx });
  return {
    login: async (ctx, request, login) => {
      const verdict = await judge(ctx, request, login);
      if (verdict.is === 'refused') return refuse(ctx, verdict.refusal);
      if (verdict.is === 'complete') return interactions.answer(ctx, { login });
      await interactions.keepFirstFactor(ctx, login);
      ctx.redirect(`${interactionPath(request.uid)}/${FACTOR_STEP}`);
    },
    secondFactor: async (ctx, { userId, amr, acr }) => {
      // Read anew: what was there before the factor was checked may be over by now.
      const request = await interactions.pending(ctx);
      const { firstFactor } = request;
      if (firstFactor === undefined) return ctx.redirect(interactionPath(request.uid));
      if (firstFactor.userId !== userId) throw requestExpired();
      const given = { amr, acr, authTime: epochSeconds(wallClock), ip: ctx.ip };
      const login = withSecondFactor(firstFactor, given);
      const verdict = await judge(ctx, request, login);
      if (verdict.is === 'refused') return refuse(ctx, verdict.refusal);
      if (verdict.is === 'incomplete') throw requestExpired();
      await interactions.answer(ctx, { login });
    },
  };
}
