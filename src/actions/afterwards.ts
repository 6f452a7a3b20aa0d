// Actions that nobody waits for: what they are told of is done. They run in a queue of bounded length, one after the other
// as they came, few at once, and what one fails with is in the log.
import { createQueue } from '../delivery/queue.ts';
import type { Trigger } from '../records/actions.ts';
import type { ActionEvent, Actions, ActionsAbout } from './actions.ts';

export interface Afterwards {
  /** Runs the actions of a trigger, if there is room for them. @param event read when their turn has come. */
  run(trigger: Trigger, event: () => Promise<ActionEvent>, about: ActionsAbout): void;
  /** Runs those that wait, for at most `ms` milliseconds. */
  flush(ms: number): Promise<void>;
}

/** How many run at once, so that logins have the threads that they need; and how many wait at most. */
const [CONCURRENCY, CAPACITY] = [2, 1_000];

/** The queue of a tenant. */
export function createAfterwards(actions: Pick<Actions, 'run' | 'dropped'>): Afterwards {
  const queue = createQueue({ pauses: [], concurrency: CONCURRENCY, capacity: CAPACITY });
  return {
    run: (trigger, event, about) => {
      const isTaken = queue.add({
        run: async () => {
          await actions.run(trigger, await event(), about);
        },
        // One that failed may have done half of it: it is not run again.
        mayPass: () => false,
        // Why is in the log already.
        gaveUp: async () => {},
      });
      if (!isTaken) actions.dropped(trigger, about);
    },
    flush: async (ms) => {
      await queue.flush(ms);
    },
  };
}
