// What leaves the server and must not be lost: it is written to the store together with what it follows from, tried by the
// process that wrote it, and removed when its receiver has taken it. What a process leaves behind, however it ends,
// another one takes up. A receiver may get twice what it took in the moment of a crash, under the same id.
import type { Logger } from 'pino';
import type { Clock } from '../runtime/clock.ts';
import { deadlineIn, doneBy } from '../runtime/deadline.ts';
import type { Random } from '../runtime/random.ts';
import type { Store, Write } from '../store/contract.ts';
import { type Claim, type Claims, COLLECTION, createClaims } from './claims.ts';
import { createQueue, type Pause, type Queue } from './queue.ts';

/** One kind of delivery: what is done with it. @template C its content: JSON, kept sealed. */
export interface DeliveryKind<C> {
  kind: string;
  /**
   * Tries it once.
   * @param delivery `id`: the same at each try; `done`: removes it, for whoever writes something else at its end.
   */
  attempt(content: C, delivery: { id: string; done: Write }): Promise<void>;
  /** Whether a failure is temporary. */
  mayPass(error: unknown): boolean;
  /** Called when it is given up, with the last failure. */
  gaveUp(content: C, error: unknown): Promise<void>;
  /** Pauses between tries, milliseconds. */
  pauses: readonly number[];
  /** The longest that a try may take, milliseconds. */
  longest: number;
  /** Tries at once. */
  concurrency: number;
  /** How many this process holds; more wait in the store. */
  capacity: number;
}

/** Somebody who waits for the outcome. */
interface Watch {
  isAwaited(): boolean;
  /** Failed tries after which a delivery that is waited for is given up. */
  most: number;
  /** Pauses between its tries, milliseconds. */
  pauses: readonly number[];
  /** Called when it was taken, or left to others (undefined), or given up (the reason). */
  ended(error?: unknown): void;
}

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

/** A kind as the process works on it. */
interface Line extends DeliveryKind<unknown> {
  queue: Queue;
}

/** How often it is looked for what others have left, milliseconds. */
const LOOK = 1_000;
/** How many are taken up at a time. */
const AT_ONCE = 200;
/** How many may wait in the store, in all: messages that strangers cause, while a mail server is down. */
const MOST = 100_000;

/** A delivery that cannot be kept: too many wait. */
export class TooManyWaiting extends Error {
  constructor() {
    super('too many messages wait to be sent');
    this.name = 'TooManyWaiting';
  }
}

/** The deliveries of a tenant. */
export function createDeliveries(deps: DeliveriesDependencies): Deliveries {
  const { log, ending } = deps;
  const lines = new Map<string, Line>();
  /** Those that this process is at. */
  const held = new Set<string>();
  const claims = createClaims(deps, AT_ONCE);
  const work = { claims, held, clock: deps.clock, log };
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

interface Work {
  claims: Claims;
  held: Set<string>;
  clock: Clock;
  log: Logger;
}

/** How far this process has come with a delivery. */
interface Progress {
  isSent: boolean;
  /** Whether the last failure was the store's. */
  isOurs: boolean;
}

/** Works on a delivery of ours, until it is over or somebody else's. */
function begin(work: Work, line: Line, claim: Claim, watch?: Watch): void {
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
      // It stays in the store, and is given up by whoever tries it next.
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

/** The tries of a delivery. */
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
      // The whole of a try has to be within the lease: nobody else may begin one meanwhile.
      if (until === undefined || until - clock() < longest) until = await claims.renew(claim.id, longest);
      if (until === undefined) {
        forget();
        return ended();
      }
      // In the pause after a failure whoever comes first may take it.
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

/** This process has no room: it waits in the store, where there is some. */
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
