// Sends messages: renders them, hands them to the channel's transport with retries, and records each outcome in the log
// and the tenant's log events.
import type { Logger } from 'pino';
import type { EventType } from '../records/log-events.ts';
import type { Clock } from '../runtime/clock.ts';
import type { Measures } from '../runtime/measures.ts';
import type { Events } from '../tenant/events.ts';
import { type Carried, DeliveryError, type MessageKind, type Messages, type Notice } from './messages.ts';
import { createQueue, type Pause, type Queue, timerPause } from './queue.ts';
import type { Templates } from './templates.ts';
import type { Outgoing, OutgoingEmail, OutgoingSms, Transport } from './transport.ts';

interface MessagesDependencies {
  templates: Templates;
  email: Transport<OutgoingEmail>;
  sms: Transport<OutgoingSms>;
  events: Events;
  log: Logger;
  clock: Clock;
  pause?: Pause;
  measures?: Pick<Measures, 'message'> | undefined;
}

/** How long a caller waits for the outcome over all tries, milliseconds. */
const PATIENCE = 2_000;
/** Failed tries after which a waiting caller gets the failure. */
const PATIENT_TRIES = 3;
const PATIENT_PAUSES = [300, 1_500, 5_000, 30_000, 120_000];
/** Pauses in the background: about ten minutes, enough for a provider's restart or a greylisting mail server. */
const BACKGROUND_PAUSES = [1_000, 5_000, 30_000, 120_000, 480_000];
const CONCURRENCY = 8;
const CAPACITY = 2_000;

/** A message being sent. */
interface Sending {
  kind: MessageKind;
  notice: Notice;
  carried: Carried | undefined;
  /** Whether a caller still waits for the outcome. */
  isAwaited(): boolean;
  /** Called once: with the reason when given up, undefined when sent. */
  ended(error: DeliveryError | undefined): void;
}

/** The messages of a tenant. */
export function createMessages(deps: MessagesDependencies): Messages {
  const { templates, pause = timerPause } = deps;
  const settings = { pauses: BACKGROUND_PAUSES, concurrency: CONCURRENCY, capacity: CAPACITY, pause };
  // One queue each, so that a hanging mail server does not delay SMS.
  const queues = { email: createQueue(settings), sms: createQueue(settings) };
  const queueOf = (kind: MessageKind) => queues[isSms(kind) ? 'sms' : 'email'];

  return {
    send: async (kind, notice, carried) => {
      let awaited = true;
      const patience = new AbortController();
      const outcome = new Promise<void>((resolve, reject) => {
        const ended = (error?: DeliveryError) => (error === undefined ? resolve() : reject(error));
        start(deps, queueOf(kind), { kind, notice, carried, isAwaited: () => awaited, ended });
      });
      try {
        await Promise.race([outcome, timerPause(PATIENCE, patience.signal)]);
      } finally {
        awaited = false;
        patience.abort();
      }
    },
    post: (kind, notice, carried) =>
      start(deps, queueOf(kind), { kind, notice, carried, isAwaited: () => false, ended: () => {} }),
    template: (kind) => templates.settings(kind),
    flush: async (ms) => {
      const left = await Promise.all(Object.values(queues).map((queue) => queue.flush(ms)));
      const sum = left.reduce((a, b) => a + b, 0);
      if (sum > 0) deps.log.error({ left: sum }, 'messages were not sent before the end');
      await Promise.all([deps.email.close(), deps.sms.close()]);
    },
  };
}

/** Queues a message; its outcome is recorded whether or not a caller waits. */
function start(deps: MessagesDependencies, queue: Queue, sending: Sending): void {
  const { templates, log, clock } = deps;
  const { kind, notice, carried, isAwaited, ended } = sending;
  const tooLate = clock() + (carried?.ttlSeconds ?? Number.POSITIVE_INFINITY) * 1000;
  let rendered: Promise<Outgoing> | undefined;
  const gaveUp = async (thrown: unknown) => {
    const error = asDeliveryError(thrown);
    report(deps, kind, notice, thrown);
    try {
      await carried?.revoke();
    } catch (fault) {
      log.error({ err: fault }, 'a failed message left its code');
    }
    ended(error);
  };
  const taken = queue.add({
    run: async () => {
      if (clock() >= tooLate)
        throw new DeliveryError('rejected', 'what the message carried is no longer good');
      rendered ??= templates.render(kind, notice);
      await deliver(deps, await rendered);
      report(deps, kind, notice);
      ended(undefined);
    },
    mayPass: (error, tries) => mayPass(error) && !(isAwaited() && tries >= PATIENT_TRIES),
    gaveUp,
    urgent: isAwaited(),
    ...(isAwaited() && { pauses: PATIENT_PAUSES }),
  });
  if (!taken) void gaveUp(new DeliveryError('queue-full', 'too many messages wait to be sent'));
}

function deliver({ email, sms }: MessagesDependencies, message: Outgoing): Promise<void> {
  return message.channel === 'email' ? email.deliver(message) : sms.deliver(message);
}

function isSms(kind: MessageKind): boolean {
  return kind === 'passwordless_sms' || kind === 'mfa_sms';
}

function mayPass(error: unknown): boolean {
  return error instanceof DeliveryError && error.code === 'unavailable';
}

function asDeliveryError(error: unknown): DeliveryError {
  if (error instanceof DeliveryError) return error;
  return new DeliveryError('rejected', 'the message could not be sent', { cause: error });
}

/** The hosted service's type codes for what was sent; kinds without one are in the log alone. */
const SENT: Partial<Record<MessageKind, EventType>> = {
  passwordless_email: 'cls',
  passwordless_sms: 'cs',
  verify_email: 'svr',
  reset_email: 'scpr',
  mfa_oob_code: 'gd_send_email',
  mfa_sms: 'gd_send_sms',
};

const NOT_SENT: Partial<Record<MessageKind, EventType>> = { verify_email: 'fvr', reset_email: 'fcpr' };

/** Records the outcome of a message, never its content. */
function report(
  { events, log, measures }: MessagesDependencies,
  kind: MessageKind,
  notice: Notice,
  error?: unknown,
): void {
  const { application, connection, user, to, ip } = notice;
  measures?.message(kind, isSms(kind) ? 'sms' : 'email', error === undefined ? 'sent' : 'failed');
  const type = error === undefined ? SENT[kind] : (NOT_SENT[kind] ?? 'fn');
  if (type !== undefined) {
    events.record({
      type,
      user_name: to,
      ...(application && { client_id: application.client_id }),
      ...(connection && { connection: connection.name }),
      ...(user && { user_id: user.id }),
      ...(ip !== undefined && { ip }),
      ...(error !== undefined && { description: asDeliveryError(error).message }),
    });
  }
  if (error === undefined) log.info({ kind }, 'a message was sent');
  else log.warn({ kind, err: error }, 'a message could not be sent');
}
