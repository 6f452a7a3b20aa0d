// The tries of a delivery by this process.
import type { Logger } from 'pino';
import type { Clock } from '../runtime/clock.ts';
import { type Claim, type Claims, COLLECTION } from './claims.ts';
import { type Line, MOST, TooManyWaiting, type Watch } from './delivery-kind.ts';

interface Work {
  claims: Claims;
  held: Set<string>;
  clock: Clock;
  log: Logger;
}

/** How far this process has come with a delivery. */
interface Progress {
  isSent: boolean;
  /** Whether the last failure was one of the store. */
  isOurs: boolean;
}

/** Works on a claimed delivery until it is done, given up, or claimed by another process. */
export function begin(work: Work, line: Line, claim: Claim, watch?: Watch): void {
  const { claims, held, log } = work;
  const { id } = claim;
  const content: unknown = JSON.parse(claim.content);
  const progress: Progress = { isSent: false, isOurs: false };
  held.add(id);
  const ended = (error?: unknown) => watch?.ended(error);
  const forget = () => void held.delete(id);
  const attempt = () => line.attempt(content, { id, done: { collection: COLLECTION, delete: id } });
  const giveUp = async (error: unknown) => {
    try {
      if (!progress.isSent) await line.gaveUp(content, error);
      ended(error);
      await claims.remove(id);
    } catch (fault) {
      // The delivery stays in the store; the process that tries it next gives it up.
      log.error({ err: fault }, 'what could not be sent could not be given up');
      ended(error);
    }
    forget();
  };
  const leave = (ms: number, failed: number) =>
    claims
      .release(id, ms, failed)
      .catch((error: unknown) =>
        log.error({ err: error }, 'what waits to be sent could not be left to others'),
      );
  const leaveNow = async () => {
    await leave(0, 0);
    forget();
    ended();
  };
  const isAwaited = () => watch?.isAwaited() === true;
  const taken = line.queue.add({
    run: trier(work, { claim, longest: line.longest, progress, attempt, ended, forget }),
    mayPass: (error, tries) =>
      (progress.isOurs || line.mayPass(error)) && !(isAwaited() && tries >= (watch?.most ?? 0)),
    gaveUp: giveUp,
    pausing: (ms) => leave(ms, 1),
    postponed: leaveNow,
    urgent: isAwaited(),
    pauses: watch?.pauses ?? line.pauses.slice(claim.tries),
  });
  if (!taken) void overflow(work, giveUp, leaveNow);
}

/** Returns the function that makes one try. */
function trier(
  { claims, clock }: Work,
  of: {
    claim: Claim;
    longest: number;
    progress: Progress;
    attempt(): Promise<void>;
    ended(): void;
    forget(): void;
  },
): () => Promise<void> {
  const { claim, longest, progress, attempt, ended, forget } = of;
  let until: number | undefined = claim.until;
  return async () => {
    progress.isOurs = true;
    if (!progress.isSent) {
      // A whole try must fit into the lease, so that no other process begins one meanwhile.
      if (until === undefined || until - clock() < longest) until = await claims.renew(claim.id, longest);
      if (until === undefined) {
        forget();
        return ended();
      }
      // In the pause after a failure any process may claim the delivery.
      until = undefined;
      progress.isOurs = false;
      await attempt();
      progress.isOurs = true;
      progress.isSent = true;
      ended();
    }
    await claims.remove(claim.id);
    forget();
  };
}

/** Handles a delivery for which this process has no room: it waits in the store, if there is room. */
async function overflow(
  { claims, log }: Work,
  giveUp: (error: unknown) => Promise<void>,
  leave: () => Promise<void>,
): Promise<void> {
  const count = await claims.count().catch((error: unknown) => {
    log.error({ err: error }, 'what waits to be sent could not be counted');
    return 0;
  });
  await (count > MOST ? giveUp(new TooManyWaiting()) : leave());
}
