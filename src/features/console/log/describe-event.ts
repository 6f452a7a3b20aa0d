// Describes a log event: by a message for its type in the page's language, or else by its declaration.

import type { Locale } from '../../../capabilities/pages/locales.ts';
import type { EventTypes } from '../../../records/base/log-events.ts';

/** An event as returned by `GET /logs`. */
export interface EventAnswer {
  log_id: string;
  type: string;
  date: string;
  description?: string;
  client_id?: string;
  client_name?: string;
  connection?: string;
  user_id?: string;
  user_name?: string;
  ip?: string;
  transaction?: string;
  details?: Record<string, unknown>;
}

/** Returns the name of the person or application an event is about; undefined when it names none. */
export function actorOf({ user_name: name, user_id: id, details, client_name: client, type }: EventAnswer) {
  const { administrator } = (details?.request ?? {}) as { administrator?: unknown };
  if (typeof administrator === 'string') return administrator;
  // A call of the Management API that was not made for a user was made by the application itself.
  return name ?? id ?? (type === 'sapi' || type === 'fapi' ? client : undefined);
}

export function describeEvent(
  event: EventAnswer,
  { text, has }: Pick<Locale, 'text' | 'has'>,
  eventTypes: EventTypes,
): string {
  const key = `console.log.event.${event.type}`;
  if (!has(key)) return eventTypes[event.type]?.meaning ?? event.type;
  return text(key, { who: actorOf(event) ?? text('console.log.somebody') });
}

const FAILURE_TYPES =
  /^(f|fu|fp|fn|fs|fv|fcp|fcpr|fvr|flo|fcoa|fapi|ferrt|fe\w+|fd\w+)$|^limit_|_failed$|^failed_|_rejected$|_exceed$/;

/** Reports whether an event is a failure or a refusal. */
export const isFailure = ({ type }: Pick<EventAnswer, 'type'>): boolean => FAILURE_TYPES.test(type);
