// What has to leave the server and must not be lost: kept from before the request that caused it is answered until its
// receiver has taken it, or it is given up.
import type { Stored } from './record.ts';

/** One message to one receiver; `id` stays the same over all tries, and is told to receivers that count each once. */
export interface DeliveryRecord extends Stored {
  /** What takes it: `email`, `sms`, `logout-token` … */
  kind: string;
  /** What is sent, as JSON: it may hold codes and links, and is kept sealed. */
  content: string;
  /** From when on any process may take it, ISO 8601: whoever does moves that on by the length of a try. */
  dueAt: string;
  /** The process that took it last. */
  holder: string;
  /** How many tries have failed. */
  tries: number;
}
