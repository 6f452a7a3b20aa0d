// Group commit: changes that arrive while a commit is under way wait and share the next one, and are acknowledged
// when that is durable. When the database refuses (the disk is full, say), what was to be committed and all that
// waits is refused, because later changes were judged by earlier ones; the next change is tried as any other.
//
// After a failed sync nobody knows what the disk holds of what was written, and trying it again may succeed without
// having written: then the store stays read-only until it is opened again.
import type { Operation } from './schema.ts';

/** What commits operations in one transaction, elsewhere than on this thread. */
export interface Connection {
  /** @throws Error with `fatal` where the database is not to be written any more. */
  commit(operations: Operation[]): Promise<void>;
  /** Writes the whole file anew, without what was deleted. */
  compact(): Promise<void>;
  close(): Promise<void>;
}

export interface Writer {
  /** What the changes that are appended in this turn will wait for. */
  next(): Promise<void>;
  /**
   * Commits operations together with those of others. `settled` is told how that went before the promise says so.
   */
  append(operations: Operation[], settled: Settled): Promise<void>;
  /** Refuses all writes from now on. */
  stop(reason: Error): void;
  /** Why the last commit failed, if it did. */
  failure(): Error | undefined;
  /** Waits for what was appended and has the file written anew, without what was deleted. */
  compact(): Promise<void>;
  /** Waits for what was appended and closes the connection. */
  close(): Promise<void>;
}

type Settled = (isCommitted: boolean) => void;

interface Group {
  operations: Operation[];
  settled: Settled[];
  /** What its changes wait for, some of them together. */
  acknowledgments: Acknowledgment[];
}

interface Acknowledgment extends PromiseWithResolvers<void> {
  changes: number;
}

/** How many changes are acknowledged in one turn: what all who waited go on to do must not hold up other requests. */
const acknowledgedAtOnce = 16;

interface WriterOptions {
  connection: Connection;
  /** Called when a commit fails, once until one succeeds again; then with undefined. */
  onFailure(error: Error | undefined): void;
}

/** What a writer knows: the group that gathers writes, the commit under way, and the last failure. */
interface WriterState extends WriterOptions {
  waiting: Group | undefined;
  flushing: Promise<void> | undefined;
  failed: (Error & { fatal?: boolean }) | undefined;
}

/** Begins to write to a connection. */
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
    // The writers just acknowledged get a turn to append again, so that they share the next commit.
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

/** Asked again after each wait: a writer may be stopped meanwhile. */
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
    // Nobody waits for one without changes: those were refused before.
    if (changes > 0) reject(error);
  }
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
