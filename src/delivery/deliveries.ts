// What leaves the server and must not be lost: it is written to the store together with what it follows from, tried by the
// process that wrote it, and removed when its receiver has taken it. What a process leaves behind, however it ends,
// another one takes up. A receiver may get twice what it took in the moment of a crash, under the same id.
import type { Logger } from 'pino';
import type { Clock } from '../runtime/clock.ts';
import { deadlineIn, doneBy } from '../runtime/deadline.ts';
import type { Random } from '../runtime/random.ts';
import type { Store, Write } from '../store/contract.ts';
import { createClaims } from './claims.ts';
import type { DeliveryKind, Line, Watch } from './delivery-kind.ts';
import { begin } from './delivery-tries.ts';
import { createQueue, type Pause } from './queue.ts';

/** A delivery that is yet to be written. */
export interface Prepared {
  write: Write;
  /** To be called once it is written: tries it. */
  begin(watch?: Watch): void;
}

export interface Deliveries {
  /** Adds a kind. @returns what makes deliveries of it. */
  add<C>(kind: DeliveryKind<C>): (content: C) => Prepared;
  /** Takes up what other processes have left, now and from then on. */
  start(): void;
  /** Tries what waits once more, within `ms` milliseconds; the rest stays in the store. */
  flush(ms: number): Promise<void>;
}

interface DeliveriesDependencies {
  store: Store;
  clock: Clock;
  random: Random;
  log: Logger;
  pause?: Pause | undefined;
  /** Aborted when the server is about to end. */
  ending: AbortSignal;
}

/** How often it is looked for what others have left, milliseconds. */
const LOOK = 1_000;

/** How many are taken up at a time. */
const AT_ONCE = 200;

/** The deliveries of a tenant. */
export function createDeliveries(deps: DeliveriesDependencies): Deliveries {
  const { store, log, ending } = deps;
  // Whose turn a delivery is must be the same everywhere.
  const clock = store.sharedClock ?? deps.clock;
  const lines = new Map<string, Line>();
  /** Those that this process is at. */
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
      // What one of them causes, such as the mail of a request, is tried as well.
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
