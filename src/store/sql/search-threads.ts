// The threads that run searches. SQLite cannot be interrupted, so a thread whose search exceeds its limit is abandoned
// and ends when its statement does; other searches need not wait for it.
import { QueryTimeout } from '../contract.ts';
import type { Thread } from './sqlite-thread.ts';
import type { Request } from './sqlite-worker.ts';

type Rows = Record<string, unknown>[];

/** The time limit of a search, including its wait for a thread, in milliseconds. */
const TIMEOUT_MS = 5_000;
/** The maximum number of threads searching at once: more would take the processor from logins. */
const MAX_SEARCHES = 2;
/** The maximum number of threads, including abandoned ones. */
const MAX_THREADS = 4;

export interface SearchThreads {
  /** Runs a search. @throws QueryTimeout; Error naming the file, with SQLite's code. */
  ask(request: Request): Promise<Rows>;
  /** Ends all threads; searches under way are rejected. */
  end(): Promise<void>;
}

interface SearchRequest extends PromiseWithResolvers<Rows> {
  request: Request;
  /** Set while a thread works on it. */
  thread?: Thread;
  timer?: NodeJS.Timeout;
}

/** Returns threads that are started when they are needed. @param start starts a thread. @param timeoutMs milliseconds. */
export function searchThreads(start: () => Thread, timeoutMs = TIMEOUT_MS): SearchThreads {
  const idle: Thread[] = [];
  const busy = new Set<Thread>();
  const ending = new Set<Promise<unknown>>();
  const queue: SearchRequest[] = [];
  let isOver = false;

  const giveUp = (thread: Thread) => {
    busy.delete(thread);
    const ended = thread.end().finally(() => {
      ending.delete(ended);
      next();
    });
    ending.add(ended);
  };
  const timeOut = (one: SearchRequest) => {
    const at = queue.indexOf(one);
    if (at >= 0) queue.splice(at, 1);
    refuse(one, new QueryTimeout());
    if (one.thread !== undefined) giveUp(one.thread);
    next();
  };
  const threadFor = (): Thread | undefined => {
    const known = idle.pop();
    if (known !== undefined) return known.ended() ? threadFor() : known;
    const isFull = busy.size >= MAX_SEARCHES || busy.size + ending.size >= MAX_THREADS;
    return isFull || isOver ? undefined : start();
  };
  const next = (): void => {
    const [one] = queue;
    const thread = one === undefined ? undefined : threadFor();
    if (one === undefined || thread === undefined) return;
    queue.shift();
    one.thread = thread;
    busy.add(thread);
    thread
      .ask(one.request)
      .then(one.resolve, one.reject)
      .finally(() => {
        clearTimeout(one.timer);
        if (!busy.delete(thread)) return;
        idle.push(thread);
        next();
      });
    next();
  };
  return {
    ask(request) {
      const one: SearchRequest = { request, ...Promise.withResolvers<Rows>() };
      one.timer = setTimeout(() => timeOut(one), timeoutMs);
      queue.push(one);
      next();
      return one.promise;
    },
    async end() {
      isOver = true;
      for (const one of queue.splice(0)) refuse(one, new Error('the store was closed'));
      await Promise.all([...[...idle, ...busy].map((thread) => thread.end()), ...ending]);
    },
  };
}

function refuse(one: SearchRequest, error: Error): void {
  clearTimeout(one.timer);
  one.reject(error);
}
