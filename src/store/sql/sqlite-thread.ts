// The threads that SQLite works in, seen from this one: requests are answered in the order they are made.
import { Worker } from 'node:worker_threads';
import { threadEnvironment } from '../../runtime/compile-cache.js';
import type { Operation } from './schema.ts';
import type { Answer, Request } from './sqlite-worker.ts';
import type { Connection } from './writer.ts';

/** SQLITE_IOERR_FSYNC and SQLITE_IOERR_DIR_FSYNC. */
const syncFaults = [1034, 1290];

/** A thread with a connection of its own. */
export interface Thread {
  /** @throws Error naming the file, with SQLite's code. */
  ask(request: Request): Promise<Record<string, unknown>[]>;
  /** Ends it, whatever it does; what it was asked for is rejected. */
  end(): Promise<unknown>;
  ended(): boolean;
}

/** Starts a thread on a database. It does not keep the process alive, except while it is asked for something. */
export function startThread(file: string, statements: string[]): Thread {
  // The published package holds JavaScript; the repository runs the TypeScript as it is.
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
  const url = new URL(`./sqlite-worker.${extension}`, import.meta.url);
  // What passes through lives for one commit: a small young generation keeps memory low.
  const resourceLimits = { maxYoungGenerationSizeMb: 8 };
  const worker = new Worker(url, {
    workerData: { file, statements },
    name: 'sqlite',
    resourceLimits,
    env: threadEnvironment(),
  });
  worker.unref();
  const asked: PromiseWithResolvers<Record<string, unknown>[]>[] = [];
  let ended: Error | undefined;
  const end = (reason: Error) => {
    ended ??= reason;
    for (const one of asked.splice(0)) one.reject(ended);
  };
  worker.on('message', (answer: Answer) => {
    const one = asked.shift();
    if (asked.length === 0) worker.unref();
    if ('error' in answer) {
      one?.reject(Object.assign(new Error(`${file}: ${answer.error}`), { code: answer.code }));
    } else one?.resolve(answer.rows ?? []);
  });
  worker.on('error', (cause) => end(new Error(`${file}: ${cause.message}`, { cause })));
  worker.on('exit', () => end(new Error(`${file}: the thread that has it open has ended`)));
  return {
    ask(request) {
      if (ended !== undefined) return Promise.reject(ended);
      const one = Promise.withResolvers<Record<string, unknown>[]>();
      asked.push(one);
      worker.ref();
      worker.postMessage(request);
      return one.promise;
    },
    end: () => worker.terminate(),
    ended: () => ended !== undefined,
  };
}

/**
 * The connection that commits, in a thread. One that has ended (there was no descriptor for it, say) is started again
 * with the next commit; after a failed sync nothing is written any more.
 */
export function startConnection(file: string, statements: string[]): Connection {
  // Many a command only reads.
  let thread: Thread | undefined;
  const running = () => {
    if (thread === undefined || thread.ended()) thread = startThread(file, statements);
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
      if (thread !== undefined && !thread.ended()) await thread.ask({ close: true });
    },
  };
}
