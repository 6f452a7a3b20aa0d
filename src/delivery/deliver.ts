// Messages as features send them: rendered, handed to the transport of their channel, tried again, and each
// outcome told to the log and to the tenant's events.
import type { Logger } from 'pino';
import type { Events, EventType } from '../tenant/events.ts';
import { DeliveryError, type MessageKind, type Messages, type Notice } from './messages.ts';
import { createQueue, type Pause, timerPause } from './queue.ts';
import type { Templates } from './templates.ts';
import type { Outgoing, OutgoingEmail, OutgoingSms, Transport } from './transport.ts';

export interface MessagesDependencies {
  templates: Templates;
  email: Transport<OutgoingEmail>;
  sms: Transport<OutgoingSms>;
  events: Events;
  log: Logger;
  pause?: Pause;
}

/** While somebody waits for the answer: two more tries, within about two seconds beside the provider's own time. */
const PATIENT_PAUSES = [300, 1_500];
/** In the background: over some ten minutes, which a provider's restart or a greylisting mail server need. */
const BACKGROUND_PAUSES = [1_000, 5_000, 30_000, 120_000, 480_000];
const CONCURRENCY = 8;
const CAPACITY = 2_000;

/** The messages of a tenant. */
export function createMessages(deps: MessagesDependencies): Messages {
  const { templates, log, pause = timerPause } = deps;
  const queue = createQueue({
    pauses: BACKGROUND_PAUSES,
    concurrency: CONCURRENCY,
    capacity: CAPACITY,
    pause,
  });
  const deliver = (message: Outgoing) =>
    message.channel === 'email' ? deps.email.deliver(message) : deps.sms.deliver(message);

  const send: Messages['send'] = async (kind, notice) => {
    const message = await templates.render(kind, notice);
    const never = new AbortController().signal;
    for (const ms of [...PATIENT_PAUSES, undefined]) {
      try {
        await deliver(message);
        return report(deps, kind, notice);
      } catch (error) {
        if (ms !== undefined && mayPass(error)) await pause(ms, never);
        else {
          report(deps, kind, notice, error);
          throw asDeliveryError(error);
        }
      }
    }
  };

  const post: Messages['post'] = (kind, notice, onFailure) => {
    let rendered: Promise<Outgoing> | undefined;
    const gaveUp = async (error: unknown) => {
      report(deps, kind, notice, error);
      await onFailure?.();
    };
    const taken = queue.add({
      run: async () => {
        rendered ??= templates.render(kind, notice);
        await deliver(await rendered);
        report(deps, kind, notice);
      },
      mayPass,
      gaveUp: (error) =>
        gaveUp(error).catch((thrown: unknown) =>
          log.error({ err: thrown }, 'a failed message left its code'),
        ),
    });
    if (taken) return;
    const full = new DeliveryError('queue-full', 'too many messages wait to be sent');
    void gaveUp(full).catch((thrown: unknown) =>
      log.error({ err: thrown }, 'a failed message left its code'),
    );
  };

  return {
    send,
    post,
    template: (kind) => templates.settings(kind),
    flush: async (ms) => {
      const left = await queue.flush(ms);
      if (left > 0) log.error({ left }, 'messages were not sent before the end');
      await Promise.all([deps.email.close(), deps.sms.close()]);
    },
  };
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

/** Says how a message went; never what was in it. */
function report(
  { events, log }: MessagesDependencies,
  kind: MessageKind,
  notice: Notice,
  error?: unknown,
): void {
  const { application, connection, user, to, ip } = notice;
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
