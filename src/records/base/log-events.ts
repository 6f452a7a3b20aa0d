// The tenant's log events.
import type { Stored } from './record.ts';

/**
 * How many events of a type strangers can have recorded (src/capabilities/protection/rate-limit.ts): `attempts` for what
 * attack protection limits as well, `rejections` for requests that are refused at once, and `unbounded` where only
 * authorized callers cause them.
 */
export type EventBounds = 'attempts' | 'rejections' | 'unbounded';

interface EventDeclaration {
  /** A sentence. */
  readonly meaning: string;
  readonly bounds: EventBounds;
}

declare const declared: unique symbol;

/** A declared type of events. Only {@link eventTypesOf} makes one, so that a type that nobody declares does not compile. */
export interface EventType extends EventDeclaration {
  /** As at the hosted service. */
  readonly code: string;
  readonly [declared]: true;
}

export type EventTypes = Readonly<Record<string, EventType>>;

/**
 * Declares types of events by their codes: each with its meaning, and with its bounds where they are not `attempts`. Whoever
 * declares them lists them among the `events` of their part (declaration.ts), so that the documents and the console know them.
 */
export function eventTypesOf<C extends string>(
  declarations: Readonly<Record<C, string | EventDeclaration>>,
): Readonly<Record<C, EventType>> {
  return Object.fromEntries(
    Object.entries<string | EventDeclaration>(declarations).map(([code, declaration]) => {
      const stated = typeof declaration === 'string' ? { meaning: declaration } : declaration;
      return [code, { bounds: 'attempts', ...stated, code }];
    }),
    // The compiler knows neither the names of entries nor the mark, which exists for it alone.
  ) as unknown as Record<C, EventType>;
}

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

/** The members of `details` with the actors of a chain (RFC 8693 §4.1), from the one who acts now to the first. */
export const ACTOR_FIELDS = [1, 2, 3, 4, 5].map((depth) => `details${'.act'.repeat(depth)}.sub`);

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
