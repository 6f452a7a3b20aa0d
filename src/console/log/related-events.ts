// Groups the events of one login: in their order, with the outcome and its reason.
import { eventIdAt } from '../../tenant/events.ts';
import { type AnsweredEvent, isBad } from './describe-event.ts';
import { quoted } from './filter.ts';

/** The maximum time between the requests of one login that consists of several, milliseconds. */
const NEAR = 600_000;

/**
 * Reports whether a transaction is a login in the browser: its ids are longer than those of requests
 * (runtime/correlation.ts).
 */
const isOfLogin = (transaction: string): boolean => transaction.length > 20;

/** Reports whether an event is a call of the Management API, which is not part of a login. */
const isOfManagement = ({ type }: AnsweredEvent): boolean => type === 'sapi' || type === 'fapi';

/**
 * Returns the log queries that find the events related to an event. These are the events of its transaction. An
 * application that logs in by several requests has a transaction for each, so in that case they also include events
 * of the same user, address and application at about that time.
 */
export function relatedQueries(event: AnsweredEvent): string[] {
  const { transaction, user_id: user, ip, client_id: client, date } = event;
  const own = transaction === undefined ? [] : [`transaction:${quoted(transaction)}`];
  const isWhole = transaction !== undefined && isOfLogin(transaction);
  if (isWhole || isOfManagement(event) || user === undefined || ip === undefined || client === undefined)
    return own;
  const at = Date.parse(date);
  const near = [
    `user_id:${quoted(user)}`,
    `ip:${quoted(ip)}`,
    `client_id:${quoted(client)}`,
    `log_id:[${eventIdAt(at - NEAR)} TO ${eventIdAt(at + NEAR)}~]`,
  ];
  return [...own, near.join(' AND ')];
}

/** Returns the related events among those found, and the event itself, in order. */
export function relatedEvents(event: AnsweredEvent, found: readonly AnsweredEvent[]): AnsweredEvent[] {
  const belongs = (one: AnsweredEvent) =>
    one.transaction === event.transaction ||
    (!isOfManagement(one) && (one.transaction === undefined || !isOfLogin(one.transaction)));
  const all = new Map([event, ...found.filter(belongs)].map((one) => [one.log_id, one]));
  return [...all.values()].sort((a, b) => (a.log_id < b.log_id ? -1 : 1));
}

interface Outcome {
  is: 'in' | 'refused' | 'waiting' | 'other';
  /** The reason for the refusal, as logged. */
  why?: string | undefined;
}

/** Events after which a login waits for the user. */
const ASKED: ReadonlySet<string> = new Set(['mfar', 'gd_start_auth', 'gd_start_enroll']);

/** Returns the outcome; the last relevant event decides. */
export function outcomeOf(events: readonly AnsweredEvent[]): Outcome {
  let outcome: Outcome = { is: 'other' };
  for (const event of events) {
    if (event.type === 's') outcome = { is: 'in' };
    else if (ASKED.has(event.type)) outcome = { is: 'waiting' };
    // A failed logout, message or call of the Management API does not refuse a login.
    else if (isBad(event) && !isOfManagement(event) && !['flo', 'fn'].includes(event.type))
      outcome = { is: 'refused', why: event.description ?? outcome.why };
  }
  return outcome;
}
