// A kind of delivery: what is done with one, for how long it is tried, and what is told of its end.
import type { Write } from '../store/contract.ts';
import type { Queue } from './queue.ts';

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
export interface Watch {
  isAwaited(): boolean;
  /** Failed tries after which a delivery that is waited for is given up. */
  most: number;
  /** Pauses between its tries, milliseconds. */
  pauses: readonly number[];
  /** Called when it was taken, or left to others (undefined), or given up (the reason). */
  ended(error?: unknown): void;
}

/** A kind as the process works on it. */
export interface Line extends DeliveryKind<unknown> {
  queue: Queue;
}

/** How many may wait in the store, in all: messages that strangers cause, while a mail server is down. */
export const MOST = 100_000;

/** A delivery that cannot be kept: too many wait. */
export class TooManyWaiting extends Error {
  constructor() {
    super('too many messages wait to be sent');
    this.name = 'TooManyWaiting';
  }
}
