// Correlation of log events: the events of a request, and of what it starts in the background, have its id; the
// events of all requests of one login have the id of the login.
import { AsyncLocalStorage } from 'node:async_hooks';

export interface Trail {
  /** Runs a function whose events get this id. @param id no secret. */
  around<T>(id: string, work: () => T): T;
  /** Gives the current work the id of something that began earlier. @param id no secret. */
  follow(id: string): void;
  /** Returns the current id; undefined outside {@link around}. */
  id(): string | undefined;
}

/** Makes the correlation of one tenant's log events. */
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
