// Actions that bring messages in place of a provider. What one fails with is told the operator alone.
import { LONGEST_TRY } from '../delivery/deliver.ts';
import { DeliveryError } from '../delivery/messages.ts';
import { AuthError } from '../http/errors.ts';
import type { Trigger } from '../records/actions.ts';
import type { Clock } from '../runtime/clock.ts';
import { type Actions, type ActionsAbout, LONGEST_OF_ONE } from './actions.ts';
import type { ActionEvent } from './event-now.ts';

/** Characters of a reason, as published: of a longer one the rest is left out. */
const LONGEST = 1024;

/** What bringing a message needs. */
export interface BringingDependencies {
  actions: Pick<Actions, 'isBound' | 'run'>;
  wallClock: Clock;
}

interface Brought {
  event: ActionEvent;
  about: ActionsAbout;
  /** What is to be read nowhere: a code, or what a link proves. */
  hidden: readonly string[];
}

/**
 * Has the actions of a trigger bring a message.
 * @throws DeliveryError `unavailable` where they ask for another try; `rejected` where they give it up, or have failed.
 */
export async function bringMessage(
  { actions, wallClock }: BringingDependencies,
  trigger: Trigger,
  { event, about, hidden }: Brought,
): Promise<void> {
  // None begins so late that another process may try the message before it has ended.
  const until = wallClock() + LONGEST_TRY - LONGEST_OF_ONE;
  const { notification } = await actions
    .run(trigger, event, about, { hidden, until })
    .catch((thrown: unknown) => {
      if (!(thrown instanceof AuthError)) throw thrown;
      // It may have been sent all the same, so it is not tried again.
      throw new DeliveryError('rejected', 'the action that sends messages has failed', { cause: thrown });
    });
  if (notification === undefined) return;
  const { isFinal, reason } = notification;
  // Codes and links are out of it before it is cut: a part of one at its end would not be found.
  throw new DeliveryError(isFinal ? 'rejected' : 'unavailable', reason.slice(0, LONGEST));
}
