// Actions around registrations and password changes. `pre-user-registration` may refuse a user or set their metadata;
// the others run afterwards, when the response has been sent.
import { AuthError } from '../../http/errors.ts';
import type { Trigger } from '../../records/tenant/actions.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Store, Write } from '../../store/contract.ts';
import type { Config } from '../../tenant/config.ts';
import type { Events } from '../../tenant/events.ts';
import type { Asker } from '../../users/asker.ts';
import type { Profile } from '../../users/create.ts';
import { type Registration, RegistrationRefused } from '../../users/registration.ts';
import type { User } from '../../users/user.ts';
import type { Users } from '../../users/users.ts';
import { userEvents } from '../../users/users-declaration.ts';
import type { Deliveries } from '../delivery/deliveries.ts';
import { type DeliveryKind, TooManyDeliveries } from '../delivery/deliveries.ts';
import { type ActionLogFields, type Actions, MAX_ACTION_MS } from './actions.ts';
import type { ActionOutcome } from './commands.ts';
import { type ActionEvent, withMembers } from './current-event.ts';
import { clientOf, connectionOf, userOf } from './facts.ts';

interface RegistrationDependencies extends Omit<DeferredRunsDependencies<unknown>, 'actions' | 'eventOf'> {
  actions: Actions;
  config: Pick<Config, 'client' | 'connection'>;
  events: Pick<Events, 'record'>;
  users: Pick<Users, 'get'>;
}

/** What the event of an action that runs afterwards is made from. */
interface CompletedOperation {
  user: User;
  /** The connection's name. */
  connection: string;
  asker: Asker;
}

const TRIGGER_BEFORE = 'pre-user-registration';

export function registrationActions(deps: RegistrationDependencies): Registration {
  const { actions, users } = deps;
  const afterwards = createDeferredRuns<CompletedOperation>({
    ...deps,
    // The user as of now; if the user was removed meanwhile, as of the operation.
    eventOf: async ({ user, connection, asker }) => ({
      ...(await eventOf(deps, connection, asker)),
      user: userOf((await users.get(user.id)) ?? user),
    }),
  });
  const hookOf = (trigger: 'post-user-registration' | 'post-change-password'): Registration['after'] => {
    return (connection, asker) => {
      if (!actions.isBound(trigger)) return undefined;
      let prepared: PreparedRun | undefined;
      const prepare = (user: User) => {
        const about = { ...aboutOf(asker), user_id: user.id };
        const { organization: _, visitor: _before, ...setFields } = asker;
        prepared = afterwards.prepare({ trigger, of: { user, connection, asker: setFields }, about });
        return prepared;
      };
      return {
        write: (user) => prepare(user).write,
        deliver: async (user) => {
          const isRecorded = prepared !== undefined;
          const run = prepared ?? prepare(user);
          if (!isRecorded) await afterwards.record(run);
          run.start();
        },
      };
    };
  };
  return {
    before: async ({ connection, profile }, asker) => {
      if (!actions.isBound(TRIGGER_BEFORE)) return {};
      const { email, username, phone_number: phone } = profile;
      const about = { ...aboutOf(asker), connection, user_name: email ?? username ?? phone };
      const user = { user_metadata: {}, app_metadata: {}, ...profile };
      const event = { ...(await eventOf(deps, connection, asker)), ...asker.visitor, user };
      return metadataOf(profile, await outcomeOf(deps, event, about));
    },
    after: hookOf('post-user-registration'),
    passwordSet: hookOf('post-change-password'),
  };
}

/** @throws RegistrationRefused when an action refuses the user, or fails. */
async function outcomeOf(
  { actions, events }: Pick<RegistrationDependencies, 'actions' | 'events'>,
  event: ActionEvent,
  about: ActionLogFields,
): Promise<ActionOutcome> {
  const refuse = (description: string, userMessage?: string) => {
    const setFields = Object.entries(about).filter(([, value]) => value !== undefined);
    events.record({ type: userEvents.fs, ...Object.fromEntries(setFields), description });
    return new RegistrationRefused(userMessage);
  };
  const outcome = await actions.run(TRIGGER_BEFORE, event, about).catch((thrown: unknown) => {
    throw thrown instanceof AuthError ? refuse('an action failed') : thrown;
  });
  const { denied } = outcome;
  if (denied === undefined) return outcome;
  // The first argument is for the log, the second for the user.
  throw refuse(denied.code ?? denied.reason, denied.userMessage);
}

function metadataOf({ user_metadata, app_metadata }: Profile, outcome: ActionOutcome): Profile {
  const { userMetadata, appMetadata } = outcome;
  return {
    user_metadata: withMembers(user_metadata, userMetadata),
    app_metadata: withMembers(app_metadata, appMetadata),
  };
}

const aboutOf = ({ clientId, request }: Asker): ActionLogFields => ({
  client_id: clientId,
  ip: typeof request?.ip === 'string' ? request.ip : undefined,
});

async function eventOf(
  { config }: Pick<RegistrationDependencies, 'config'>,
  name: string,
  { clientId, request = {}, transaction }: Asker,
): Promise<Record<string, unknown>> {
  const [client, connection] = await Promise.all([
    clientId === undefined ? undefined : config.client(clientId),
    config.connection(name),
  ]);
  return {
    ...(clientId !== undefined && { client: clientOf(client, clientId) }),
    ...(connection && { connection: connectionOf(connection) }),
    request: { geoip: {}, ...request },
    ...(transaction && { transaction }),
  };
}

// Runs actions after an operation is done (after a registration, after a password change). The run is recorded in the
// store in the same write as the operation, so that a crash loses none. Few run at once, and failures are in the log.
// docs/understand/decisions/actions-scripts.md#actions-that-run-after-the-response-are-stored-together-with-the-data-for-their-event

/** A run that is recorded: JSON, which the store seals. @template E what its event is made from. */
export interface RecordedRun<E> {
  trigger: Trigger;
  of: E;
  about: ActionLogFields;
}

/** A run that is not recorded yet. */
interface PreparedRun {
  write: Write;
  /** Called after the write: runs the actions when there is room. */
  start(): void;
}

interface DeferredRuns<E> {
  prepare(run: RecordedRun<E>): PreparedRun;
  record(prepared: PreparedRun): Promise<void>;
}

interface DeferredRunsDependencies<E> {
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
