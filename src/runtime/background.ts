// Background work, such as looking up whether an account exists, whose time must not show in the response. It is
// finished before the process ends.
import type { Logger } from 'pino';

export interface Background {
  /** Runs the work after the present turn; a failure is logged under `what`. */
  run(what: string, work: () => Promise<void>): void;
  flush(): Promise<void>;
}

export function createBackground(log: Logger): Background {
  const open = new Set<Promise<void>>();
  return {
    run: (what, work) => {
      const running = new Promise<void>((resolve) => setImmediate(resolve))
        .then(work)
        .catch((error: unknown) => log.error({ err: error }, `${what} failed`))
        .finally(() => open.delete(running));
      open.add(running);
    },
    flush: async () => {
      while (open.size > 0) await Promise.all(open);
    },
  };
}
