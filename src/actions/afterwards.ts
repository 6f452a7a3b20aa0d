// Actions that nobody waits for: what they are told of is done. What is to be told is kept in the store with it, so that no
// crash loses it; few run at once, and what one fails with is in the log.
import type { Deliveries } from '../delivery/deliveries.ts';
import type { DeliveryKind } from '../delivery/delivery-kind.ts';
import { TooManyWaiting } from '../delivery/delivery-kind.ts';
import type { Trigger } from '../records/actions.ts';
import type { Clock } from '../runtime/clock.ts';
import type { Store, Write } from '../store/contract.ts';
import { type Actions, type ActionsAbout, LONGEST_OF_ONE } from './actions.ts';
import type { ActionEvent } from './event-now.ts';

/** What actions are to be told: JSON, kept sealed. @template E what their event is made of. */
export interface Told<E> {
  trigger: Trigger;
  of: E;
  about: ActionsAbout;
}

/** A run that is yet to be kept. */
export interface PreparedRun {
  /** The write that keeps it. */
  write: Write;
  /** To be called once it is written: runs it when its turn has come. */
  begin(): void;
}

interface Afterwards<E> {
  prepare(told: Told<E>): PreparedRun;
  /** Keeps one by itself. */
  keep(prepared: PreparedRun): Promise<void>;
}

export interface AfterwardsDependencies<E> {
  actions: Pick<Actions, 'run' | 'dropped'>;
  deliveries: Pick<Deliveries, 'add'>;
  store: Pick<Store, 'batch'>;
  /** Epoch milliseconds. */
  wallClock: Clock;
  /** Makes the event, when its turn has come. */
  eventOf(of: E): Promise<ActionEvent>;
}

/** How many run at once, so that logins have the threads that they need; and how many a process holds. */
const [CONCURRENCY, CAPACITY] = [2, 1_000];
/** The longest that the actions of one trigger take together, milliseconds. */
const LONGEST = 300_000;
/** Pauses before the event is made again, where the store could not be read, milliseconds. */
const PAUSES = [1_000, 5_000, 30_000, 120_000];

/** Nothing has run yet: it may be tried again. */
class NotBegun extends Error {}

/** The actions of a tenant that run afterwards. */
export function createAfterwards<E>(deps: AfterwardsDependencies<E>): Afterwards<E> {
  const { deliveries, store } = deps;
  const prepare = deliveries.add(runOf(deps));
  return {
    prepare,
    keep: ({ write }) => store.batch([write]),
  };
}

function runOf<E>({ actions, wallClock, eventOf }: AfterwardsDependencies<E>): DeliveryKind<Told<E>> {
  return {
    kind: 'actions',
    attempt: async ({ trigger, of, about }, { id }) => {
      // Another process may begin a run after that: this one has then ended.
      const until = wallClock() + LONGEST - LONGEST_OF_ONE;
      const event = await eventOf(of).catch((thrown: unknown) => {
        throw new NotBegun('what actions are told could not be read', { cause: thrown });
      });
      await actions.run(trigger, event, about, { execution: id, until });
    },
    // One that failed may have done half of what it does: it is not run again.
    mayPass: (error) => error instanceof NotBegun,
    gaveUp: async ({ trigger, about }, error) => {
      // Why an action has failed is in the log already.
      if (error instanceof TooManyWaiting) actions.dropped(trigger, 'too many waited', about);
      if (error instanceof NotBegun) actions.dropped(trigger, 'their event could not be made', about);
    },
    pauses: PAUSES,
    longest: LONGEST,
    concurrency: CONCURRENCY,
    capacity: CAPACITY,
  };
}
