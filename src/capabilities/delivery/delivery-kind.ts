// A kind of delivery: how it is attempted, for how long it is retried, and what happens when it is given up.
import type { Write } from '../../store/contract.ts';
import type { Queue } from './queue.ts';

/** A kind of delivery. @template C its content: JSON, which the store seals. */
export interface DeliveryKind<C> {
  kind: string;
  /**
   * Tries a delivery once.
   * @param delivery `id`: the same at each try; `done`: the write that removes it, for an attempt that stores something
   * else with it.
   */
  attempt(content: C, delivery: { id: string; done: Write }): Promise<void>;
  /** Whether a failure is temporary. */
  isTemporary(error: unknown): boolean;
  /** Called when a delivery is given up, with the last failure. */
  onGiveUp(content: C, error: unknown): Promise<void>;
  /** Pauses between tries, milliseconds. */
  pauses: readonly number[];
  /** The longest duration of a try, milliseconds. */
  maxDuration: number;
  /** How many tries run at once. */
  concurrency: number;
  /** How many deliveries this process holds; more wait in the store. */
  capacity: number;
}

/** A caller who waits for the outcome. */
export interface DeliveryWatcher {
  isAwaited(): boolean;
  /** After so many failed tries a delivery is given up while the caller waits. */
  maxTries: number;
  /** Pauses between these tries, milliseconds. */
  pauses: readonly number[];
  /**
   * Called without an error when the delivery was accepted or left to other processes; with the reason when it was
   * given up.
   */
  onEnd(error?: unknown): void;
}

/** A kind with this process's queue. */
export interface QueuedKind extends DeliveryKind<unknown> {
  queue: Queue;
}

/** How many deliveries may wait in the store in all. Strangers can cause messages while a mail server is down. */
export const MAX_STORED = 100_000;

/** A delivery that cannot be stored, because too many wait. */
export class TooManyDeliveries extends Error {
  constructor() {
    super('too many messages wait to be sent');
    this.name = 'TooManyDeliveries';
  }
}
