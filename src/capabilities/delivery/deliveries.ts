// Deliveries: what the server sends and must not lose. A delivery is stored in the same write as its cause, tried by
// the process that wrote it, and removed when its receiver has accepted it. Another process takes over what a process
// leaves behind, however it ended. After a crash a receiver may get a delivery twice, with the same id.
import type { Logger } from 'pino';
import type { Clock } from '../../runtime/clock.ts';
import { deadlineIn, doneBy } from '../../runtime/deadline.ts';
import type { Random } from '../../runtime/random.ts';
import type { Store, Write } from '../../store/contract.ts';
import { createClaims } from './claims.ts';
import type { DeliveryKind, DeliveryWatcher, QueuedKind } from './delivery-kind.ts';
import { startTries } from './delivery-tries.ts';
import { createQueue, type Pause } from './queue.ts';

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
