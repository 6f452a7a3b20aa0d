// DPoP proofs whose `nbf` is a few seconds ahead. Clocks differ, and FAPI 2.0 Security Profile §5.3.2.1 has them taken; the engine
// takes none before its `nbf` and has no setting for it. Such a request waits until then, before anything of it is judged.
import { setTimeout as wait } from 'node:timers/promises';
import { decodeJwt } from 'jose';
import type { Context, Middleware } from 'koa';
import type { Clock } from '../runtime/clock.ts';

/** How far ahead, milliseconds. */
const AHEAD = 10_000;

/** How many wait at once: anybody can make such a proof. Those beyond are refused, as all were. */
const MOST_WAITING = 100;

/** Added because a timer may fire a moment before the clock reaches its time, milliseconds. */
const LATER = 20;

/** A date in the proof of a request, epoch seconds; not verified. NaN where there is none. */
export function dateInProof(ctx: Pick<Context, 'get'>, name: 'iat' | 'nbf'): number {
  try {
    return Number(decodeJwt(ctx.get('DPoP'))[name]);
  } catch {
    return Number.NaN;
  }
}

/** Has requests with such a proof wait. @param most how many at once. */
export function waitForProofs({ wallClock }: { wallClock: Clock }, most: number = MOST_WAITING): Middleware {
  let waiting = 0;
  return async (ctx, next) => {
    const left = ctx.get('DPoP') === '' ? 0 : dateInProof(ctx, 'nbf') * 1000 - wallClock();
    if (left > 0 && left <= AHEAD && waiting < most) {
      waiting += 1;
      await wait(left + LATER);
      waiting -= 1;
    }
    await next();
  };
}
