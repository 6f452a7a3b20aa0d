// Groups the events of one login: in their order, with the outcome and its reason.
import { eventIdAt } from '../../../tenant/events.ts';
import { type EventAnswer, isFailure } from './describe-event.ts';
import { quoted } from './filter.ts';

/** The maximum time between the requests of one login that consists of several, milliseconds. */
const MAX_GAP_MS = 600_000;

/**
 * Reports whether a transaction is a login in the browser: its ids are longer than those of requests
 * (runtime/correlation.ts).
 */
const isOfLogin = (transaction: string): boolean => transaction.length > 20;

/** Reports whether an event is a call of the Management API, which is not part of a login. */
const isOfManagement = ({ type }: EventAnswer): boolean => type === 'sapi' || type === 'fapi';

/**
 * Returns the log queries that find the events related to an event. These are the events of its transaction. An
 * application that logs in by several requests has a transaction for each, so in that case they also include events
 * of the same user, address and application at about that time.
 */
export function relatedQueries(event: EventAnswer): string[] {
  const { transaction, user_id: user, ip, client_id: client, date } = event;
  const transactionQuery = transaction === undefined ? [] : [`transaction:${quoted(transaction)}`];
  const isWhole = transaction !== undefined && isOfLogin(transaction);
  if (isWhole || isOfManagement(event) || user === undefined || ip === undefined || client === undefined)
    return transactionQuery;
  const at = Date.parse(date);
  const near = [
    `user_id:${quoted(user)}`,
    `ip:${quoted(ip)}`,
    `client_id:${quoted(client)}`,
    `log_id:[${eventIdAt(at - MAX_GAP_MS)} TO ${eventIdAt(at + MAX_GAP_MS)}~]`,
  ];
  return [...transactionQuery, near.join(' AND ')];
}

/** Returns the related events among those found, and the event itself, in order. */
export function relatedEvents(event: EventAnswer, found: readonly EventAnswer[]): EventAnswer[] {
  const belongs = (one: EventAnswer) =>
    one.transaction === event.transaction ||
    (!isOfManagement(one) && (one.transaction === undefined || !isOfLogin(one.transaction)));
  const all = new Map([event, ...found.filter(belongs)].map((one) => [one.log_id, one]));
  return [...all.values()].sort((a, b) => (a.log_id < b.log_id ? -1 : 1));
}

interface Outcome {
  kind: 'in' | 'refused' | 'waiting' | 'other';
  /** The reason for the refusal, as logged. */
  reason?: string | undefined;
}

/** Events after which a login waits for the user. */
const WAITING_TYPES: ReadonlySet<string> = new Set(['mfar', 'gd_start_auth', 'gd_start_enroll']);

/** Returns the outcome; the last relevant event decides. */
export function outcomeOf(events: readonly EventAnswer[]): Outcome {
  let outcome: Outcome = { kind: 'other' };
  for (const event of events) {
    if (event.type === 's') outcome = { kind: 'in' };
    else if (WAITING_TYPES.has(event.type)) outcome = { kind: 'waiting' };
    // A failed logout, message or call of the Management API does not refuse a login.
    else if (isFailure(event) && !isOfManagement(event) && !['flo', 'fn'].includes(event.type))
      outcome = { kind: 'refused', reason: event.description ?? outcome.reason };
  }
  return outcome;
}
