// Messages that must not be lost: each is stored before the request that caused it is answered, until its receiver has
// accepted it or it is given up.
import type { Requester } from '../../runtime/requester.ts';
import type { Stored } from '../base/record.ts';

/**
 * One message to one receiver. `id` stays the same over all attempts and is sent along, so that receivers can discard
 * duplicates.
 */
export interface DeliveryRecord extends Stored {
  /** The kind of receiver: `email`, `sms`, `logout-token` … */
  kind: string;
  /** The content as JSON. It may contain codes and links, so it is stored sealed. */
  content: string;
  /**
   * From when any process may send it, ISO 8601. The process that does so first moves it on by the duration of an
   * attempt.
   */
  dueAt: string;
  /** The process that made the last attempt. */
  holder: string;
  /** The number of failed attempts. */
  tries: number;
  /** Who caused it, for fair shares. */
  from: Requester;
}
