// A log event in words: a sentence of its type in the page's language, or what its declaration says it means.

import type { Locale } from '../../pages/locales.ts';
import type { EventMeanings } from '../../records/declaration.ts';

/** An event as `GET /logs` answers it. */
export interface AnsweredEvent {
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

/** Who an event is about, as it names them; undefined where it names nobody. */
export function whoOf({ user_name: name, user_id: id, details, client_name: client, type }: AnsweredEvent) {
  const { administrator } = (details?.request ?? {}) as { administrator?: unknown };
  if (typeof administrator === 'string') return administrator;
  // A call of the Management API is an application's own, where it is no user's.
  return name ?? id ?? (type === 'sapi' || type === 'fapi' ? client : undefined);
}

/** The sentence of an event. */
export function wordsOf(
  event: AnsweredEvent,
  { text, has }: Pick<Locale, 'text' | 'has'>,
  meanings: EventMeanings,
): string {
  const key = `console.log.event.${event.type}`;
  if (!has(key)) return meanings[event.type] ?? event.type;
  return text(key, { who: whoOf(event) ?? text('console.log.somebody') });
}

const BAD =
  /^(f|fu|fp|fn|fs|fv|fcp|fcpr|fvr|flo|fcoa|fapi|ferrt|fe\w+|fd\w+)$|^limit_|_failed$|_rejected$|_exceed$/;

/** Whether something has gone wrong, or was refused. */
export const isBad = ({ type }: Pick<AnsweredEvent, 'type'>): boolean => BAD.test(type);
