// What actions that deliver messages may report about one that was not delivered.
import { z } from 'zod';
import { type Take, taking } from './taking.ts';

export interface NotificationAsked {
  /** Whether the message is dropped; otherwise it is tried again. */
  isFinal: boolean;
  /** For the log, of any length. */
  reason: string;
}

interface WithNotification {
  notification?: NotificationAsked;
}

const reasons = z.tuple([z.string()]).rest(z.unknown());

/** The last call counts. */
const ends = (isFinal: boolean) =>
  taking<WithNotification, typeof reasons>(reasons, (outcome, [reason]) => {
    outcome.notification = { isFinal, reason };
  });

/** The methods of `api.notification`, by name. */
export const NOTIFICATION_TAKE = {
  'notification.drop': ends(true),
  'notification.retry': ends(false),
} satisfies Record<string, Take<WithNotification>>;
