// What actions that bring messages may say of one that they have not brought.
import { z } from 'zod';
import { type Take, taking } from './taking.ts';

export interface NotificationAsked {
  /** Whether it is given up; otherwise it is tried again. */
  isFinal: boolean;
  /** For the log. */
  reason: string;
}

interface WithNotification {
  notification?: NotificationAsked;
}

/** Characters of a reason, as published: of a longer one the rest is left out. */
const LONGEST = 1024;

const reasons = z.tuple([z.string().transform((reason) => reason.slice(0, LONGEST))]).rest(z.unknown());

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
