// The tenant's log events.
import type { Stored } from './record.ts';

/**
 * The types of events. Each declaration adds its types here (`declare module`), so that the compiler accepts no
 * other.
 */
// biome-ignore lint/suspicious/noEmptyInterface: its members are where they are declared
export interface EventTypes {}

/** The type code of an event, as at the hosted service. */
export type EventType = keyof EventTypes;

/** A log event. `type` is the hosted service's code, such as `s`, `f`, `ss`. It never contains a secret. */
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
  /** The id of the login or request that the event belongs to, which all its events share. */
  transaction?: string;
  details?: Record<string, unknown>;
}

/** The number of events in a past hour; `id` is the hour, in the form in which ids of events begin. */
export interface LogCountRecord extends Stored {
  /** The beginning of the hour, in epoch milliseconds. */
  hour: number;
  /** By event type: the number of events, and the id of the latest. */
  counts: Record<string, number>;
  latest: Record<string, string>;
  /** A HyperLogLog sketch of the users who logged in, base64; not set if nobody did. */
  users?: string;
}

/** The position of a log stream; `id` is the stream's. */
export interface LogStreamPositionRecord extends Stored {
  /** The id of the last event that the receiver accepted; empty before the first. */
  after: string;
  /** Number of failed attempts since then. */
  failures: number;
  /** Time of the first of those, in epoch milliseconds. */
  failingSince?: number;
  /** Time of the next attempt, in epoch milliseconds. */
  retryAt?: number;
  /** The stream's `updated_at` at the last attempt: a changed stream is tried at once. */
  version?: string;
}
