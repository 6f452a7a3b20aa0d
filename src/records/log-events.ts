// The tenant's log.
import type { Stored } from './record.ts';

/** The types of events: whoever declares one adds it here (`declare module`), so that no other can be written. */
// biome-ignore lint/suspicious/noEmptyInterface: its members are where they are declared
export interface EventTypes {}

/** The hosted service's code of an event. */
export type EventType = keyof EventTypes;

/** A tenant log event; `type` is the hosted service's code, such as `s`, `f`, `ss`. Never holds a secret. */
export interface LogEventRecord extends Stored {
  type: string;
  /** ISO 8601. */
  date: string;
  description?: string;
  client_id?: string;
  connection?: string;
  user_id?: string;
  user_name?: string;
  ip?: string;
  /** The id of the login, or the request, that it belongs to: its other events have the same. */
  transaction?: string;
  details?: Record<string, unknown>;
}

/** What was logged in an hour that is over; `id` is the hour, as ids of events begin. */
export interface LogCountRecord extends Stored {
  /** Epoch milliseconds of its beginning. */
  hour: number;
  /** How many events, and the id of the latest, by type. */
  counts: Record<string, number>;
  latest: Record<string, string>;
  /** A sketch of the users who logged in, base64; none where nobody did. */
  users?: string;
}

/** How far a log stream has come; `id` is the stream's. */
export interface LogStreamPositionRecord extends Stored {
  /** The id of the last event that its receiver has taken; empty before the first. */
  after: string;
  /** Tries that have failed since. */
  failures: number;
  /** Epoch milliseconds, of the first of those. */
  failingSince?: number;
  /** Epoch milliseconds, before which there is no other try. */
  retryAt?: number;
  /** Of the stream, as it was at the last try: one that was changed is tried at once. */
  version?: string;
}
