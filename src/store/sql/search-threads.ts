// The threads that run searches. SQLite cannot be interrupted, so a thread whose search exceeds its limit is abandoned
// and ends when its statement does; other searches need not wait for it.
import { QueryTimeout } from '../contract.ts';
import type { Thread } from './sqlite-thread.ts';
import type { Request } from './sqlite-worker.ts';

type Rows = Record<string, unknown>[];

/** The time limit of a search, including its wait for a thread, in milliseconds. */
const LONGEST = 5_000;
/** The maximum number of threads searching at once: more would take the processor from logins. */
const AT_ONCE = 2;
/** The maximum number of threads, including abandoned ones. */
const MOST = 4;

export interface SearchThreads {
  /** Runs a search. @throws QueryTimeout; Error naming the file, with SQLite's code. */
  ask(request: Request): Promise<Rows>;
  /** Ends all threads; searches under way are rejected. */
  end(): Promise<void>;
}

interface Asked extends PromiseWithResolvers<Rows> {
  request: Request;
  /** Set while a thread works on it. */
  thread?: Thread;
  timer?: NodeJS.Timeout;
}

/** Returns threads that are started when they are needed. @param start starts a thread. @param longest milliseconds. */
export function searchThreads(start: () => Thread, longest = LONGEST): SearchThreads {
  const idle: Thread[] = [];
  const busy = new Set<Thread>();
  const ending = new Set<Promise<unknown>>();
  const waiting: Asked[] = [];
  let isOver = false;

  const giveUp = (thread: Thread) => {
    busy.delete(thread);
    const ended = thread.end().finally(() => {
      ending.delete(ended);
      next();
    });
    ending.add(ended);
  };
  const timeOut = (one: Asked) => {
    const at = waiting.indexOf(one);
    if (at >= 0) waiting.splice(at, 1);
    refuse(one, new QueryTimeout());
    if (one.thread !== undefined) giveUp(one.thread);
    next();
  };
  const threadFor = (): Thread | undefined => {
    const known = idle.pop();
    if (known !== undefined) return known.ended() ? threadFor() : known;
    const isFull = busy.size >= AT_ONCE || busy.size + ending.size >= MOST;
    return isFull || isOver ? undefined : start();
  };
  const next = (): void => {
    const [one] = waiting;
    const thread = one === undefined ? undefined : threadFor();
    if (one === undefined || thread === undefined) return;
    waiting.shift();
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
      const one: Asked = { request, ...Promise.withResolvers<Rows>() };
      one.timer = setTimeout(() => timeOut(one), longest);
      waiting.push(one);
      next();
      return one.promise;
    },
    async end() {
      isOver = true;
      for (const one of waiting.splice(0)) refuse(one, new Error('the store was closed'));
      await Promise.all([...[...idle, ...busy].map((thread) => thread.end()), ...ending]);
    },
  };
}

function refuse(one: Asked, error: Error): void {
  clearTimeout(one.timer);
  one.reject(error);
}
