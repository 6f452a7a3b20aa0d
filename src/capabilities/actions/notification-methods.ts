// What actions that deliver messages may report about one that was not delivered.
import { z } from 'zod';
import { type ApiMethod, apiMethod } from './api-method.ts';

export interface NotificationFailure {
  /** Whether the message is dropped; otherwise it is tried again. */
  isFinal: boolean;
  /** For the log, of any length. */
  reason: string;
}

interface WithNotificationFailure {
  notification?: NotificationFailure;
}

const reasonArguments = z.tuple([z.string()]).rest(z.unknown());

/** The last call counts. */
const fails = (isFinal: boolean) =>
  apiMethod<WithNotificationFailure, typeof reasonArguments>(reasonArguments, (outcome, [reason]) => {
    outcome.notification = { isFinal, reason };
  });

/** The methods of `api.notification`, by name. */
export const NOTIFICATION_METHODS = {
  'notification.drop': fails(true),
  'notification.retry': fails(false),
} satisfies Record<string, ApiMethod<WithNotificationFailure>>;
