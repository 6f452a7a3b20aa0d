// Actions that deliver messages in place of a provider. Only the operator learns why one failed.

import { AuthError } from '../../http/errors.ts';
import { DeliveryError } from '../../records/base/message-transport.ts';
import type { Trigger } from '../../records/tenant/actions.ts';
import type { Clock } from '../../runtime/clock.ts';
import { MAX_ATTEMPT_MS } from '../delivery/deliver.ts';
import { type ActionLogFields, type Actions, MAX_ACTION_MS } from './actions.ts';
import type { ActionEvent } from './current-event.ts';

/** Longest reason, characters, as published; the rest of a longer one is cut off. */
const MAX_REASON_LENGTH = 1024;

export interface ActionDeliveryDependencies {
  actions: Pick<Actions, 'isBound' | 'run'>;
  wallClock: Clock;
}

interface ActionMessage {
  event: ActionEvent;
  about: ActionLogFields;
  /** Values that must not appear in the log: a code, or the secret part of a link. */
  hidden: readonly string[];
}

/**
 * Has the actions of a trigger deliver a message.
 * @throws DeliveryError `unavailable` where they ask for another try; `rejected` where they drop it, or have failed.
 */
export async function deliverByActions(
  { actions, wallClock }: ActionDeliveryDependencies,
  trigger: Trigger,
  { event, about, hidden }: ActionMessage,
): Promise<void> {
  // None begins so late that another process could try the message before it has ended.
  const until = wallClock() + MAX_ATTEMPT_MS - MAX_ACTION_MS;
  const { notification } = await actions
    .run(trigger, event, about, { hidden, until })
    .catch((thrown: unknown) => {
      if (!(thrown instanceof AuthError)) throw thrown;
      // The message may have been sent nevertheless, so it is not tried again.
      throw new DeliveryError('rejected', 'the action that sends messages has failed', { cause: thrown });
    });
  if (notification === undefined) return;
  const { isFinal, reason } = notification;
  // Codes and links were removed before the cut: part of one at the end of the text would not be found.
  throw new DeliveryError(isFinal ? 'rejected' : 'unavailable', reason.slice(0, MAX_REASON_LENGTH));
}
