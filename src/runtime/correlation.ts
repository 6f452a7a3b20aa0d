// Correlation of log events: the events of a request, and of what it starts in the background, have its id; the
// events of all requests of one login have the id of the login.
import { AsyncLocalStorage } from 'node:async_hooks';

export interface Correlation {
  /** Runs a function whose events get this id. @param id no secret. */
  run<T>(id: string, work: () => T): T;
  /** Gives the current work the id of something that began earlier. @param id no secret. */
  setId(id: string): void;
  /** Returns the current id; undefined outside {@link run}. */
  id(): string | undefined;
}

/** Makes the correlation of one tenant's log events. */
export function createCorrelation(): Correlation {
  const open = new AsyncLocalStorage<{ id: string }>();
  return {
    run: (id, work) => open.run({ id }, work),
    setId: (id) => {
      const now = open.getStore();
      if (now !== undefined) now.id = id;
    },
    id: () => open.getStore()?.id,
  };
}
