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
   * Commits operations together with those of others. `settled` is called when it is known how that went, before
   * the promise says so.
   */
  append(operations: Operation[], settled: () => void): Promise<void>;
  /** Refuses all writes from now on. */
  stop(reason: Error): void;
  /** Why the last commit failed, if it did. */
  failure(): Error | undefined;
  /** Waits for what was appended and has the file written anew, without what was deleted. */
  compact(): Promise<void>;
  /** Waits for what was appended and closes the connection. */
  close(): Promise<void>;
}

interface Group {
  operations: Operation[];
  settled: (() => void)[];
  durable: PromiseWithResolvers<void>;
}

interface WriterOptions {
  connection: Connection;
  /** Called when a commit fails, once until one succeeds again; then with undefined. */
  onFailure(error: Error | undefined): void;
}

/** Begins to write to a connection. */
export function createWriter({ connection, onFailure }: WriterOptions): Writer {
  let waiting: Group | undefined;
  let flushing: Promise<void> | undefined;
  let failed: (Error & { fatal?: boolean }) | undefined;

  const isFatal = () => failed?.fatal === true;

  async function flush(): Promise<void> {
    for (;;) {
      // The writers just acknowledged get a turn to append again, so that they share the next commit.
      await nextTurn();
      if (waiting === undefined || waiting.settled.length === 0) break;
      const group = waiting;
      waiting = undefined;
      try {
        if (failed !== undefined && isFatal()) throw failed;
        await connection.commit(group.operations);
        if (failed !== undefined && !isFatal()) {
          onFailure(undefined);
          failed = undefined;
        }
        for (const settle of group.settled) settle();
        group.durable.resolve();
      } catch (error) {
        refuse(group, error instanceof Error ? error : new Error(String(error)));
      }
    }
    flushing = undefined;
  }

  function refuse(group: Group, error: Error): void {
    if (failed === undefined) onFailure(error);
    if (!isFatal()) failed = error;
    const groups = waiting === undefined ? [group] : [group, waiting];
    waiting = undefined;
    for (const settle of groups.flatMap((one) => one.settled)) settle();
    for (const { durable } of groups) durable.reject(error);
  }

  const begun = () => {
    waiting ??= { operations: [], settled: [], durable: Promise.withResolvers() };
    return waiting;
  };
  return {
    next: () => begun().durable.promise,
    append(operations, settled) {
      const group = begun();
      for (const operation of operations) group.operations.push(operation);
      group.settled.push(settled);
      flushing ??= flush();
      return group.durable.promise;
    },
    stop(reason) {
      if (failed === undefined) onFailure(reason);
      failed = Object.assign(reason, { fatal: true });
    },
    failure: () => failed,
    async compact() {
      await flushing;
      await connection.compact();
    },
    async close() {
      await flushing;
      await connection.close();
    },
  };
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
