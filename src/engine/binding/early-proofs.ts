// DPoP proofs whose `nbf` is a few seconds ahead. FAPI 2.0 Security Profile §5.3.2.1 requires them to be accepted,
// because clocks differ. The engine rejects them and has no setting for it, so such a request waits until its `nbf`
// before anything of it is checked.
import { setTimeout as wait } from 'node:timers/promises';
import type { Context, Middleware } from 'koa';
import { unverifiedClaims } from '../../capabilities/signing/verify-jwt.ts';
import type { Clock } from '../../runtime/clock.ts';

/** How far ahead `nbf` may be, milliseconds. */
const MAX_AHEAD_MS = 10_000;

/**
 * The most requests that wait at once, because anybody can make such a proof. Further ones do not wait, and the
 * engine rejects them.
 */
const MAX_WAITING = 100;

/** Added because a timer may fire a moment before the clock reaches its time, milliseconds. */
const TIMER_SLACK_MS = 20;

/** Returns a date in the proof of a request without verifying it, epoch seconds; NaN when there is none. */
export function dateInProof(ctx: Pick<Context, 'get'>, name: 'iat' | 'nbf'): number {
  try {
    return Number(unverifiedClaims(ctx.get('DPoP'))[name]);
  } catch {
    return Number.NaN;
  }
}

/** Makes a middleware that lets requests with such a proof wait. @param most how many wait at once. */
export function waitForEarlyProofs(
  { wallClock }: { wallClock: Clock },
  most: number = MAX_WAITING,
): Middleware {
  let waiting = 0;
  return async (ctx, next) => {
    const left = ctx.get('DPoP') === '' ? 0 : dateInProof(ctx, 'nbf') * 1000 - wallClock();
    if (left > 0 && left <= MAX_AHEAD_MS && waiting < most) {
      waiting += 1;
      await wait(left + TIMER_SLACK_MS);
      waiting -= 1;
    }
    await next();
  };
}
