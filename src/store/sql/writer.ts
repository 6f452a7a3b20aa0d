// Group commit: changes that arrive during a commit share the next one and are acknowledged when it is durable. When a
// commit fails (for example because the disk is full), it and all waiting changes are refused, because later changes
// were decided on the basis of earlier ones; the next change is tried normally.
//
// After a failed sync it is unknown what the disk holds, and repeating the sync may succeed without having written
// anything. Then the store stays read-only until it is opened again.
// docs/understand/decisions/store.md#if-the-disk-is-full-only-writes-are-refused
import type { Operation } from './schema.ts';

/** Commits operations in one transaction, on another thread. */
export interface Connection {
  /** @throws Error with `fatal` when the database must not be written any more. */
  commit(operations: Operation[]): Promise<void>;
  /** Rewrites the whole file without deleted data. */
  compact(): Promise<void>;
  close(): Promise<void>;
}

export interface Writer {
  /** Returns the promise that the changes appended in this turn will wait for. */
  next(): Promise<void>;
  /**
   * Commits operations together with those of others. `settled` is called with the outcome before the promise settles.
   */
  append(operations: Operation[], settled: Settled): Promise<void>;
  /** Refuses all writes from now on. */
  stop(reason: Error): void;
  /** Returns why the last commit failed, if it did. */
  failure(): Error | undefined;
  /** Waits for the appended changes, then rewrites the file without deleted data. */
  compact(): Promise<void>;
  /** Waits for the appended changes and closes the connection. */
  close(): Promise<void>;
}

type Settled = (isCommitted: boolean) => void;

interface Group {
  operations: Operation[];
  settled: Settled[];
  /** The promises that its changes wait for; several changes share one. */
  acknowledgments: Acknowledgment[];
}

interface Acknowledgment extends PromiseWithResolvers<void> {
  changes: number;
}

/** How many changes are acknowledged in one turn: the work that follows them must not block other requests. */
const acknowledgedAtOnce = 16;

interface WriterOptions {
  connection: Connection;
  /** Called with the error when commits begin to fail, and with undefined when one succeeds again. */
  onFailure(error: Error | undefined): void;
}

/** The state of a writer: the group that collects writes, the commit under way, and the last failure. */
interface WriterState extends WriterOptions {
  waiting: Group | undefined;
  flushing: Promise<void> | undefined;
  failed: (Error & { fatal?: boolean }) | undefined;
}

export function createWriter({ connection, onFailure }: WriterOptions): Writer {
  const state: WriterState = {
    connection,
    onFailure,
    waiting: undefined,
    flushing: undefined,
    failed: undefined,
  };

  const begun = () => {
    state.waiting ??= { operations: [], settled: [], acknowledgments: [] };
    return state.waiting;
  };
  const nextOf = ({ acknowledgments }: Group) => {
    const last = acknowledgments.at(-1);
    if (last !== undefined && last.changes < acknowledgedAtOnce) return last;
    const another = { ...Promise.withResolvers<void>(), changes: 0 };
    acknowledgments.push(another);
    return another;
  };
  return {
    next: () => nextOf(begun()).promise,
    append(operations, settled) {
      const group = begun();
      const acknowledgment = nextOf(group);
      acknowledgment.changes += 1;
      for (const operation of operations) group.operations.push(operation);
      group.settled.push(settled);
      state.flushing ??= flush(state);
      return acknowledgment.promise;
    },
    stop(reason) {
      if (state.failed === undefined) onFailure(reason);
      state.failed = Object.assign(reason, { fatal: true });
    },
    failure: () => state.failed,
    async compact() {
      await state.flushing;
      await connection.compact();
    },
    async close() {
      await state.flushing;
      await connection.close();
    },
  };
}

async function flush(state: WriterState): Promise<void> {
  for (;;) {
    // Callers that were just acknowledged get a turn to append again, so that they share the next commit.
    await nextTurn();
    if (state.waiting === undefined || state.waiting.settled.length === 0) break;
    const group = state.waiting;
    state.waiting = undefined;
    try {
      if (state.failed?.fatal === true) throw state.failed;
      await state.connection.commit(group.operations);
      if (state.failed !== undefined && !isFatal(state)) {
        state.onFailure(undefined);
        state.failed = undefined;
      }
      for (const settle of group.settled) settle(true);
      await acknowledge(group);
    } catch (error) {
      refuse(state, group, error instanceof Error ? error : new Error(String(error)));
    }
  }
  state.flushing = undefined;
}

async function acknowledge({ acknowledgments }: Group): Promise<void> {
  for (const [n, { resolve }] of acknowledgments.entries()) {
    if (n > 0) await nextTurn();
    resolve();
  }
}

/** Checked again after each wait, because the writer may have been stopped meanwhile. */
function isFatal({ failed }: WriterState): boolean {
  return failed?.fatal === true;
}

function refuse(state: WriterState, group: Group, error: Error): void {
  if (state.failed === undefined) state.onFailure(error);
  if (!isFatal(state)) state.failed = error;
  const groups = state.waiting === undefined ? [group] : [group, state.waiting];
  state.waiting = undefined;
  for (const settle of groups.flatMap((one) => one.settled)) settle(false);
  for (const { changes, reject } of groups.flatMap((one) => one.acknowledgments)) {
    // A group without changes has no waiting caller: its changes were refused when they were planned.
    if (changes > 0) reject(error);
  }
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
