// The threads that run SQLite, as seen from the main thread. Requests are answered in order.
import { Worker } from 'node:worker_threads';
import { threadEnvironment } from '../../runtime/compile-cache.js';
import { putSpare, type SpareThreads } from '../../runtime/spare-threads.ts';
import type { Operation } from './schema.ts';
import type { Answer, Request } from './sqlite-worker.ts';
import type { Connection } from './writer.ts';

/** SQLITE_IOERR_FSYNC and SQLITE_IOERR_DIR_FSYNC. */
const syncFaults = [1034, 1290];

/** A thread with its own connection. */
export interface Thread {
  /** Sends a request. @throws Error naming the file, with SQLite's code. */
  ask(request: Request): Promise<Record<string, unknown>[]>;
  /** Ends the thread, whatever it is doing; open requests are rejected. */
  end(): Promise<unknown>;
  /** Closes the connection; the thread may then be used for another store. */
  close(): Promise<void>;
  ended(): boolean;
}

/** The spare threads that commit. Those that search have lowered their priority and are not reused. */
const WORK = 'sqlite';

/**
 * Starts a thread on a database, or reuses a spare one. It keeps the process alive only while a request is open.
 * @param spare where a thread is taken from, and returned to when it is closed.
 */
export function startThread(file: string, statements: string[], spare?: SpareThreads): Thread {
  const worker = spare?.take(WORK) ?? newWorker();
  worker.unref();
  const pending: PromiseWithResolvers<Record<string, unknown>[]>[] = [];
  let ended: Error | undefined;
  const end = (reason: Error) => {
    ended ??= reason;
    for (const one of pending.splice(0)) one.reject(ended);
  };
  worker.on('message', (answer: Answer) => {
    const one = pending.shift();
    if (pending.length === 0) worker.unref();
    if ('error' in answer) {
      one?.reject(Object.assign(new Error(`${file}: ${answer.error}`), { code: answer.code }));
    } else one?.resolve(answer.rows ?? []);
  });
  worker.on('error', (cause) => end(new Error(`${file}: ${cause.message}`, { cause })));
  worker.on('exit', () => end(new Error(`${file}: the thread that has it open has ended`)));
  worker.postMessage({ open: { file, statements } } satisfies Request);
  const ask = (request: Request): Promise<Record<string, unknown>[]> => {
    if (ended !== undefined) return Promise.reject(ended);
    const entry = Promise.withResolvers<Record<string, unknown>[]>();
    pending.push(entry);
    worker.ref();
    worker.postMessage(request);
    return entry.promise;
  };
  return {
    ask,
    end: () => worker.terminate(),
    async close() {
      await ask({ close: true, stays: spare !== undefined });
      if (spare !== undefined) putSpare(spare, WORK, worker);
    },
    ended: () => ended !== undefined,
  };
}

function newWorker(): Worker {
  // The published package contains JavaScript; the repository runs TypeScript directly.
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
  const url = new URL(`./sqlite-worker.${extension}`, import.meta.url);
  // Data lives only for one commit: a small young generation keeps memory use low.
  const resourceLimits = { maxYoungGenerationSizeMb: 8 };
  return new Worker(url, { name: 'sqlite', resourceLimits, env: threadEnvironment() });
}

/**
 * Returns the connection that commits, in a thread. If the thread has ended (for lack of a file descriptor, for
 * example) the next commit starts it again. After a failed sync, commits throw an error with `fatal`.
 */
export function startConnection(file: string, statements: string[], spare?: SpareThreads): Connection {
  // Started at the first commit, because many commands only read.
  let thread: Thread | undefined;
  const running = () => {
    if (thread === undefined || thread.ended()) thread = startThread(file, statements, spare);
    return thread;
  };
  return {
    async commit(operations: Operation[]) {
      try {
        await running().ask({ commit: operations });
      } catch (error) {
        const { code } = error as { code?: number };
        throw code !== undefined && syncFaults.includes(code)
          ? Object.assign(error as Error, { fatal: true })
          : error;
      }
    },
    async compact() {
      await running().ask({ compact: true });
    },
    async close() {
      if (thread !== undefined && !thread.ended()) await thread.close();
    },
  };
}
