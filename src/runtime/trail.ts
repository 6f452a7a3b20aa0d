// What belongs together is told apart from what happens at the same time: the log events of a request, and of what it
// begins in the background, bear its id, and those of all requests of one login that of the login.
import { AsyncLocalStorage } from 'node:async_hooks';

export interface Trail {
  /** Does what belongs together, such as to answer a request. @param id of it; no secret. */
  around<T>(id: string, work: () => T): T;
  /** What is done now belongs to something that has begun before. @param id of that; no secret. */
  follow(id: string): void;
  /** The id of what is done now; undefined outside {@link around}. */
  id(): string | undefined;
}

/** The trails of one tenant. */
export function createTrail(): Trail {
  const open = new AsyncLocalStorage<{ id: string }>();
  return {
    around: (id, work) => open.run({ id }, work),
    follow: (id) => {
      const now = open.getStore();
      if (now !== undefined) now.id = id;
    },
    id: () => open.getStore()?.id,
  };
}
