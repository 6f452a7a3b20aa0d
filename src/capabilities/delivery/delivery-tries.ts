// The tries of a delivery by this process.
import type { Logger } from 'pino';
import type { Clock } from '../../runtime/clock.ts';
import { type Claim, type Claims, COLLECTION } from './claims.ts';
import { type DeliveryWatcher, MAX_STORED, type QueuedKind, TooManyDeliveries } from './delivery-kind.ts';

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
  isStoreFault: boolean;
}

/** Works on a claimed delivery until it is done, given up, or claimed by another process. */
export function startTries(work: Work, kind: QueuedKind, claim: Claim, watch?: DeliveryWatcher): void {
  const { claims, held, log } = work;
  const { id } = claim;
  const content: unknown = JSON.parse(claim.content);
  const progress: Progress = { isSent: false, isStoreFault: false };
  held.add(id);
  const ended = (error?: unknown) => watch?.onEnd(error);
  const forget = () => void held.delete(id);
  const attempt = () => kind.attempt(content, { id, done: { collection: COLLECTION, delete: id } });
  const giveUp = async (error: unknown) => {
    try {
      if (!progress.isSent) await kind.onGiveUp(content, error);
      ended(error);
      await claims.remove(id);
    } catch (fault) {
      // The delivery stays in the store; the process that tries it next gives it up.
      log.error({ err: fault }, 'what could not be sent could not be given up');
      ended(error);
    }
    forget();
  };
  const release = (ms: number, failed: number) =>
    claims
      .release(id, ms, failed)
      .catch((error: unknown) =>
        log.error({ err: error }, 'what waits to be sent could not be left to others'),
      );
  const postpone = async () => {
    await release(0, 0);
    forget();
    ended();
  };
  const isAwaited = () => watch?.isAwaited() === true;
  const isQueued = kind.queue.add({
    run: attemptOf(work, { claim, maxDuration: kind.maxDuration, progress, attempt, ended, forget }),
    isTemporary: (error, tries) =>
      (progress.isStoreFault || kind.isTemporary(error)) && !(isAwaited() && tries >= (watch?.maxTries ?? 0)),
    onGiveUp: giveUp,
    onPause: (ms) => release(ms, 1),
    onPostpone: postpone,
    urgent: isAwaited(),
    from: claim.from,
    pauses: watch?.pauses ?? kind.pauses.slice(claim.tries),
  });
  if (!isQueued) void overflow(work, giveUp, postpone);
}

/** Returns the function that makes one try. */
function attemptOf(
  { claims, clock }: Work,
  delivery: {
    claim: Claim;
    maxDuration: number;
    progress: Progress;
    attempt(): Promise<void>;
    ended(): void;
    forget(): void;
  },
): () => Promise<void> {
  const { claim, maxDuration, progress, attempt, ended, forget } = delivery;
  let until: number | undefined = claim.until;
  return async () => {
    progress.isStoreFault = true;
    if (!progress.isSent) {
      // A whole try must fit into the lease, so that no other process begins one meanwhile.
      if (until === undefined || until - clock() < maxDuration)
        until = await claims.renew(claim.id, maxDuration);
      if (until === undefined) {
        forget();
        return ended();
      }
      // In the pause after a failure any process may claim the delivery.
      until = undefined;
      progress.isStoreFault = false;
      await attempt();
      progress.isStoreFault = true;
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
  postpone: () => Promise<void>,
): Promise<void> {
  const count = await claims.count().catch((error: unknown) => {
    log.error({ err: error }, 'what waits to be sent could not be counted');
    return 0;
  });
  await (count > MAX_STORED ? giveUp(new TooManyDeliveries()) : postpone());
}
