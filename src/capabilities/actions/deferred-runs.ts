// Runs actions after an operation is done (after a registration, after a password change). The run is recorded in the
// store in the same write as the operation, so that a crash loses none. Few run at once, and failures are in the log.

import type { Trigger } from '../../records/actions.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Store, Write } from '../../store/contract.ts';
import type { Deliveries } from '../delivery/deliveries.ts';
import type { DeliveryKind } from '../delivery/delivery-kind.ts';
import { TooManyDeliveries } from '../delivery/delivery-kind.ts';
import { type ActionLogFields, type Actions, MAX_ACTION_MS } from './actions.ts';
import type { ActionEvent } from './current-event.ts';

/** A run that is recorded: JSON, which the store seals. @template E what its event is made from. */
export interface RecordedRun<E> {
  trigger: Trigger;
  of: E;
  about: ActionLogFields;
}

/** A run that is not recorded yet. */
export interface PreparedRun {
  /** The write that records it. */
  write: Write;
  /** Called after the write: runs the actions when there is room. */
  start(): void;
}

interface DeferredRuns<E> {
  prepare(run: RecordedRun<E>): PreparedRun;
  /** Records a run in a write of its own. */
  record(prepared: PreparedRun): Promise<void>;
}

export interface DeferredRunsDependencies<E> {
  actions: Pick<Actions, 'run' | 'recordDropped'>;
  deliveries: Pick<Deliveries, 'add'>;
  store: Pick<Store, 'batch'>;
  /** Returns epoch milliseconds. */
  wallClock: Clock;
  /** Makes the event, when the actions are about to run. */
  eventOf(of: E): Promise<ActionEvent>;
}

/** How many run at once, so that logins have the threads that they need; and how many a process holds. */
const [CONCURRENCY, CAPACITY] = [2, 1_000];
/** The longest time of all actions of one trigger together, milliseconds. */
const MAX_RUN_MS = 300_000;
/** Pauses before the event is made again, where the store could not be read, milliseconds. */
const PAUSES = [1_000, 5_000, 30_000, 120_000];

/** No action has run yet, so the run may be tried again. */
class NotStarted extends Error {}

/** Makes the runs of a tenant's actions after an operation. */
export function createDeferredRuns<E>(deps: DeferredRunsDependencies<E>): DeferredRuns<E> {
  const { deliveries, store } = deps;
  const prepare = deliveries.add(deliveryKind(deps));
  return {
    prepare,
    record: ({ write }) => store.batch([write]),
  };
}

function deliveryKind<E>({
  actions,
  wallClock,
  eventOf,
}: DeferredRunsDependencies<E>): DeliveryKind<RecordedRun<E>> {
  return {
    kind: 'actions',
    attempt: async ({ trigger, of, about }, { id }) => {
      // After `LONGEST` another process may take over the run, so this one must have ended by then.
      const until = wallClock() + MAX_RUN_MS - MAX_ACTION_MS;
      const event = await eventOf(of).catch((thrown: unknown) => {
        throw new NotStarted('what actions are told could not be read', { cause: thrown });
      });
      await actions.run(trigger, event, about, { execution: id, until });
    },
    // A run that failed may have done half of its work, so it is not repeated.
    isTemporary: (error) => error instanceof NotStarted,
    onGiveUp: async ({ trigger, about }, error) => {
      // The failure of an action is in the log already.
      if (error instanceof TooManyDeliveries) actions.recordDropped(trigger, 'too many waited', about);
      if (error instanceof NotStarted) actions.recordDropped(trigger, 'their event could not be made', about);
    },
    pauses: PAUSES,
    maxDuration: MAX_RUN_MS,
    concurrency: CONCURRENCY,
    capacity: CAPACITY,
  };
}
