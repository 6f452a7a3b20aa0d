// What actions that bring messages may say of one that they have not brought.
import { z } from 'zod';
import { type Take, taking } from './taking.ts';

export interface NotificationAsked {
  /** Whether it is given up; otherwise it is tried again. */
  isFinal: boolean;
  /** For the log, in any length. */
  reason: string;
}

interface WithNotification {
  notification?: NotificationAsked;
}

const reasons = z.tuple([z.string()]).rest(z.unknown());

/** The last one counts. */
const ends = (isFinal: boolean) =>
  taking<WithNotification, typeof reasons>(reasons, (outcome, [reason]) => {
    outcome.notification = { isFinal, reason };
  });

/** What each of their methods does. */
export const NOTIFICATION_TAKE = {
  'notification.drop': ends(true),
  'notification.retry': ends(false),
} satisfies Record<string, Take<WithNotification>>;
