// Deliveries: what the server sends and must not lose. A delivery is stored in the same write as its cause, tried by
// the process that wrote it, and removed when its receiver has accepted it. Another process takes over what a process
// leaves behind, however it ended. After a crash a receiver may get a delivery twice, with the same id.
// docs/decisions/passwordless-messages.md#a-message-is-stored-until-it-is-sent
import type { Logger } from 'pino';
import type { Clock } from '../../runtime/clock.ts';
import { deadlineIn, doneBy } from '../../runtime/deadline.ts';
import type { Random } from '../../runtime/secrets.ts';
import type { Store, Write } from '../../store/contract.ts';
import {
  type DeliveryKind,
  type DeliveryWatcher,
  MAX_STORED,
  type QueuedKind,
  TooManyDeliveries,
} from './delivery-kind.ts';
import { type Claim, type Claims, COLLECTION, createClaims, createQueue, type Pause } from './queue.ts';

/** A delivery that is not stored yet. */
export interface PreparedDelivery {
  write: Write;
  /** Tries the delivery; called after the write. */
  start(watch?: DeliveryWatcher): void;
}

export interface Deliveries {
  /** Adds a kind. @returns a function that makes deliveries of it. */
  add<C>(kind: DeliveryKind<C>): (content: C) => PreparedDelivery;
  /** Begins to take over what other processes have left, now and regularly. */
  start(): void;
  /** Tries every waiting delivery once more, within `ms` milliseconds; the rest stays in the store. */
  flush(ms: number): Promise<void>;
}

interface DeliveriesDependencies {
  store: Store;
  clock: Clock;
  random: Random;
  log: Logger;
  pause?: Pause | undefined;
  /** Aborted when the server begins to stop. */
  ending: AbortSignal;
}

/** How often deliveries of other processes are looked for, milliseconds. */
const POLL_INTERVAL = 1_000;

/** How many are claimed at a time. */
const BATCH_SIZE = 200;

/** Makes the deliveries of a tenant. */
export function createDeliveries(deps: DeliveriesDependencies): Deliveries {
  const { store, log, ending } = deps;
  // All processes must agree when a delivery is due.
  const clock = store.sharedClock ?? deps.clock;
  const kinds = new Map<string, QueuedKind>();
  /** The deliveries that this process works on. */
  const held = new Set<string>();
  const claims = createClaims({ ...deps, clock }, BATCH_SIZE);
  const work = { claims, held, clock, log };
  let polling: Promise<void> | undefined;
  let isFirst = true;
  const takeOver = async (): Promise<void> => {
    const open = [...kinds.values()]
      .filter(({ queue }) => queue.room() >= BATCH_SIZE)
      .map(({ kind }) => kind);
    if (open.length === 0) return;
    const found = await claims.due(open, isFirst);
    isFirst = found.length === BATCH_SIZE && isFirst;
    for (const record of found) {
      const kind = kinds.get(record.kind);
      if (kind === undefined || held.has(record.id) || ending.aborted) continue;
      const claim = await claims.take(record, kind.maxDuration);
      if (claim !== undefined) startTries(work, kind, claim);
    }
  };
  const poll = () => {
    polling ??= takeOver()
      .catch((error: unknown) => log.error({ err: error }, 'what waits to be sent could not be read'))
      .finally(() => {
        polling = undefined;
      });
  };
  return {
    add: (kind) => {
      const { pauses, concurrency, capacity } = kind;
      const queue = createQueue({ pauses, concurrency, capacity, ...(deps.pause && { pause: deps.pause }) });
      const queuedKind: QueuedKind = { ...(kind as DeliveryKind<unknown>), queue };
      kinds.set(kind.kind, queuedKind);
      return (content) => {
        const { claim, write } = claims.create(kind.kind, JSON.stringify(content), kind.maxDuration);
        return { write, start: (watch) => startTries(work, queuedKind, claim, watch) };
      };
    },
    start: () => {
      const timer = setInterval(poll, POLL_INTERVAL).unref();
      ending.addEventListener('abort', () => clearInterval(timer));
      poll();
    },
    flush: async (ms) => {
      const deadline = deadlineIn(ms);
      await doneBy(deadline, Promise.resolve(polling));
      // Deliveries that these cause, such as the mail of a request, are tried as well.
      do {
        await Promise.all([...kinds.values()].map(({ queue }) => queue.flush(deadline.left())));
      } while (
        deadline.left() > 0 &&
        [...kinds.values()].some(({ queue, capacity }) => queue.room() < capacity)
      );
      if (held.size > 0) log.warn({ left: held.size }, 'what was not sent waits in the store');
    },
  };
}

// The tries of a delivery by this process.

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
function startTries(work: Work, kind: QueuedKind, claim: Claim, watch?: DeliveryWatcher): void {
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
