// Sends messages: stores them, renders them, passes them to the channel's transport with retries, and records each
// outcome in the log and in the tenant's log.
import type { Logger } from 'pino';
import type { EventType } from '../../records/base/log-events.ts';
import { DeliveryError, type Transport } from '../../records/base/message-transport.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Measures } from '../../runtime/measures.ts';
import type { Store } from '../../store/contract.ts';
import type { Config } from '../../tenant/config.ts';
import type { Events } from '../../tenant/events.ts';
import type { Users } from '../../users/users.ts';
import type { Deliveries, PreparedDelivery } from './deliveries.ts';
import { type DeliveryKind, TooManyDeliveries, timerPause } from './deliveries.ts';
import { deliveryEvents } from './delivery-declaration.ts';
import type {
  CredentialRef,
  MessageCredential,
  MessageKind,
  Messages,
  Notice,
  PreparedMessage,
} from './delivery-messages.ts';
import type { Templates } from './delivery-templates.ts';
import type { Outgoing, OutgoingEmail, OutgoingSms } from './transport.ts';

interface MessagesDependencies {
  store: Store;
  config: Pick<Config, 'client' | 'connection' | 'organization'>;
  users: Pick<Users, 'get'>;
  deliveries: Pick<Deliveries, 'add'>;
  templates: Templates;
  email: Transport<OutgoingEmail>;
  sms: Transport<OutgoingSms>;
  events: Events;
  log: Logger;
  clock: Clock;
  revoke(ref: CredentialRef): Promise<void>;
  measures?: Pick<Measures, 'message' | 'messageTryFailed'> | undefined;
  /** How long a caller waits for the outcome over all tries, milliseconds. */
  maxWait?: number;
}

/** Milliseconds. */
const MAX_WAIT = 2_000;
/** After so many failed tries a waiting caller gets the failure. */
const WAITED_TRIES = 3;
const WAITED_PAUSES = [300, 1_500, 5_000, 30_000, 120_000];
/** Pauses in the background: about ten minutes, enough for a provider's restart or a greylisting mail server. */
const BACKGROUND_PAUSES = [1_000, 5_000, 30_000, 120_000, 480_000];
const CONCURRENCY = 8;
const CAPACITY = 2_000;
/** The longest duration of a try, milliseconds. Transports time out before. */
export const MAX_ATTEMPT_MS = 60_000;

export function createMessages(deps: MessagesDependencies): Messages {
  const { store, deliveries, templates, clock, maxWait = MAX_WAIT } = deps;
  // A kind for each channel, so that a hanging mail server does not delay SMS.
  const channels = {
    email: deliveries.add(channel(deps, 'email')),
    sms: deliveries.add(channel(deps, 'sms')),
  };
  const delivery = (content: MessageContent) => channels[isSms(content.kind) ? 'sms' : 'email'](content);
  const messages: Messages = {
    prepare: (kind, notice, credential) =>
      preparedMessage(delivery(contentOf(kind, notice, { credential, clock })), maxWait),
    decoy: (kind, notice) =>
      preparedMessage(delivery({ ...contentOf(kind, notice, { clock }), decoy: true }), maxWait),
    post: async (kind, notice, carried) => {
      const { write, post } = messages.prepare(kind, notice, carried);
      await store.batch([write]);
      post();
    },
    template: (kind) => templates.settings(kind),
    close: async () => {
      await Promise.all([deps.email.close(), deps.sms.close()]);
    },
  };
  return messages;
}

function preparedMessage({ write, start }: PreparedDelivery, maxWait: number): PreparedMessage {
  return {
    write,
    post: () => start(),
    send: async () => {
      let awaited = true;
      const waits = new AbortController();
      const outcome = new Promise<void>((resolve, reject) => {
        start({
          isAwaited: () => awaited,
          maxTries: WAITED_TRIES,
          pauses: WAITED_PAUSES,
          onEnd: (error) => (error === undefined ? resolve() : reject(asDeliveryError(error))),
        });
      });
      try {
        await Promise.race([outcome, timerPause(maxWait, waits.signal)]);
      } finally {
        awaited = false;
        waits.abort();
      }
    },
  };
}

function channel(deps: MessagesDependencies, kind: 'email' | 'sms'): DeliveryKind<MessageContent> {
  const { templates, clock } = deps;
  return {
    kind,
    attempt: async (content, { id }) => {
      if (content.decoy === true) return;
      if (content.until !== undefined && clock() >= content.until)
        throw new DeliveryError('rejected', 'what the message carried is no longer good');
      const message = await templates.render(content.kind, await noticeOf(deps, content));
      try {
        await deliver(deps, message, id);
      } catch (error) {
        deps.measures?.messageTryFailed(kind);
        deps.log.warn({ kind: content.kind, err: error }, 'a try to send a message failed');
        throw error;
      }
      recordOutcome(deps, content);
    },
    isTemporary: (error) => error instanceof DeliveryError && error.code === 'unavailable',
    onGiveUp: async (content, error) => {
      recordOutcome(deps, content, error);
      if (content.credential !== undefined) await deps.revoke(content.credential);
    },
    pauses: BACKGROUND_PAUSES,
    maxDuration: MAX_ATTEMPT_MS,
    concurrency: CONCURRENCY,
    capacity: CAPACITY,
  };
}

function deliver({ email, sms }: MessagesDependencies, message: Outgoing, id: string): Promise<void> {
  return message.channel === 'email' ? email.deliver(message, id) : sms.deliver(message, id);
}

function isSms(kind: MessageKind): boolean {
  return kind === 'passwordless_sms' || kind === 'mfa_sms';
}

function asDeliveryError(error: unknown): DeliveryError {
  if (error instanceof DeliveryError) return error;
  if (error instanceof TooManyDeliveries)
    return new DeliveryError('queue-full', error.message, { cause: error });
  return new DeliveryError('rejected', 'the message could not be sent', { cause: error });
}

/** The hosted service's type codes for messages that were sent. Messages without one are only in the process's log. */
const SENT_EVENTS: Partial<Record<MessageKind, EventType>> = {
  passwordless_email: deliveryEvents.cls,
  passwordless_sms: deliveryEvents.cs,
  verify_email: deliveryEvents.svr,
  reset_email: deliveryEvents.scpr,
  mfa_oob_code: deliveryEvents.gd_send_email,
  mfa_sms: deliveryEvents.gd_send_sms,
};

/** Further events for messages that could not be sent, beside `fn`, which all of them have. */
const FAILED_EVENTS: Partial<Record<MessageKind, EventType>> = {
  verify_email: deliveryEvents.fvr,
  reset_email: deliveryEvents.fcpr,
};

/** Records the outcome of a message, never its content. */
function recordOutcome(
  { events, log, measures }: MessagesDependencies,
  content: MessageContent,
  error?: unknown,
): void {
  const { kind, application, connection, user, to, ip } = content;
  measures?.message(kind, isSms(kind) ? 'sms' : 'email', error === undefined ? 'sent' : 'failed');
  const types = error === undefined ? [SENT_EVENTS[kind]] : [FAILED_EVENTS[kind], deliveryEvents.fn];
  for (const type of types) {
    if (type === undefined) continue;
    events.record({
      type,
      user_name: to,
      ...(application !== undefined && { client_id: application }),
      ...(connection !== undefined && { connection }),
      ...(user !== undefined && { user_id: user }),
      ...(ip !== undefined && { ip }),
      ...(error !== undefined && { description: asDeliveryError(error).message }),
    });
  }
  if (error === undefined) log.info({ kind }, 'a message was sent');
  else log.warn({ kind, err: error }, 'a message could not be sent');
}

// The content of a stored message. It refers to records by their ids, which are read when the message is sent.

/** The stored content, JSON. */
interface MessageContent
  extends Pick<
    Notice,
    | 'to'
    | 'inviter'
    | 'url'
    | 'code'
    | 'method'
    | 'change'
    | 'address'
    | 'details'
    | 'lifetimeInSeconds'
    | 'ip'
    | 'userAgent'
    | 'isEnrollment'
    | 'phoneTemplate'
  > {
  kind: MessageKind;
  application?: string;
  /** A connection's name. */
  connection?: string;
  /** An organization's id. */
  organization?: string;
  /** A user's id. */
  user?: string;
  languages?: readonly string[];
  credential?: CredentialRef;
  /** The message is not sent after this time, epoch milliseconds. */
  until?: number;
  /** Set on a message that is stored and never sent. */
  decoy?: true;
}

function contentOf(
  kind: MessageKind,
  notice: Notice,
  { credential, clock }: { credential?: MessageCredential | undefined; clock: Clock },
): MessageContent {
  const { application, connection, organization, user, languages, ...plain } = notice;
  return {
    kind,
    ...plain,
    ...(application && { application: application.client_id }),
    ...(connection && { connection: connection.name }),
    ...(organization && { organization: organization.id }),
    ...(user && { user: user.id }),
    ...(languages && { languages }),
    ...(credential?.ref && { credential: { id: credential.ref.id, secretHash: credential.ref.secretHash } }),
    ...(credential && { until: clock() + credential.ttlSeconds * 1000 }),
  };
}

/**
 * Returns the message of a stored content, with the records as they are now. Records that were removed are left out.
 */
async function noticeOf(
  {
    config,
    users,
  }: {
    config: Pick<Config, 'client' | 'connection' | 'organization'>;
    users: Pick<Users, 'get'>;
  },
  content: MessageContent,
): Promise<Notice> {
  const { kind: _kind, credential: _credential, until: _until, decoy: _decoy, ...stored } = content;
  const { application, connection, organization, user, ...plain } = stored;
  return {
    ...plain,
    application: application === undefined ? undefined : await config.client(application),
    connection: connection === undefined ? undefined : await config.connection(connection),
    organization: organization === undefined ? undefined : await config.organization(organization),
    user: user === undefined ? undefined : await users.get(user),
  };
}
