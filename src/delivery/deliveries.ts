// Deliveries: what the server sends and must not lose. A delivery is stored in the same write as its cause, tried by
// the process that wrote it, and removed when its receiver has accepted it. Another process takes over what a process
// leaves behind, however it ended. After a crash a receiver may get a delivery twice, with the same id.
import type { Logger } from 'pino';
import type { Clock } from '../runtime/clock.ts';
import { deadlineIn, doneBy } from '../runtime/deadline.ts';
import type { Random } from '../runtime/random.ts';
import type { Store, Write } from '../store/contract.ts';
import { createClaims } from './claims.ts';
import type { DeliveryKind, Line, Watch } from './delivery-kind.ts';
import { begin } from './delivery-tries.ts';
import { createQueue, type Pause } from './queue.ts';

/** A delivery that is not stored yet. */
export interface Prepared {
  write: Write;
  /** Tries the delivery; called after the write. */
  begin(watch?: Watch): void;
}

export interface Deliveries {
  /** Adds a kind. @returns a function that makes deliveries of it. */
  add<C>(kind: DeliveryKind<C>): (content: C) => Prepared;
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
const LOOK = 1_000;

/** How many are claimed at a time. */
const AT_ONCE = 200;

/** Makes the deliveries of a tenant. */
export function createDeliveries(deps: DeliveriesDependencies): Deliveries {
  const { store, log, ending } = deps;
  // All processes must agree when a delivery is due.
  const clock = store.sharedClock ?? deps.clock;
  const lines = new Map<string, Line>();
  /** The deliveries that this process works on. */
  const held = new Set<string>();
  const claims = createClaims({ ...deps, clock }, AT_ONCE);
  const work = { claims, held, clock, log };
  let looking: Promise<void> | undefined;
  let isFirst = true;
  const look = async (): Promise<void> => {
    const open = [...lines.values()].filter(({ queue }) => queue.room() >= AT_ONCE).map(({ kind }) => kind);
    if (open.length === 0) return;
    const found = await claims.due(open, isFirst);
    isFirst = found.length === AT_ONCE && isFirst;
    for (const record of found) {
      const line = lines.get(record.kind);
      if (line === undefined || held.has(record.id) || ending.aborted) continue;
      const claim = await claims.take(record, line.longest);
      if (claim !== undefined) begin(work, line, claim);
    }
  };
  const lookOnce = () => {
    looking ??= look()
      .catch((error: unknown) => log.error({ err: error }, 'what waits to be sent could not be read'))
      .finally(() => {
        looking = undefined;
      });
  };
  return {
    add: (kind) => {
      const { pauses, concurrency, capacity } = kind;
      const { pause } = deps;
      const queue = createQueue({ pauses, concurrency, capacity, ...(pause && { pause }) });
      const line: Line = { ...(kind as DeliveryKind<unknown>), queue };
      lines.set(kind.kind, line);
      return (content) => {
        const { claim, write } = claims.create(kind.kind, JSON.stringify(content), kind.longest);
        return { write, begin: (watch) => begin(work, line, claim, watch) };
      };
    },
    start: () => {
      const timer = setInterval(lookOnce, LOOK).unref();
      ending.addEventListener('abort', () => clearInterval(timer));
      lookOnce();
    },
    flush: async (ms) => {
      const deadline = deadlineIn(ms);
      await doneBy(deadline, Promise.resolve(looking));
      // Deliveries that these cause, such as the mail of a request, are tried as well.
      do {
        await Promise.all([...lines.values()].map(({ queue }) => queue.flush(deadline.left())));
      } while (
        deadline.left() > 0 &&
        [...lines.values()].some(({ queue, capacity }) => queue.room() < capacity)
      );
      if (held.size > 0) log.warn({ left: held.size }, 'what was not sent waits in the store');
    },
  };
}
