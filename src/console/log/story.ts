// A login told as a story: its events in their order, what came of it, and why.
import { eventIdAt } from '../../tenant/events.ts';
import { quoted } from './filter.ts';
import { type AnsweredEvent, isBad } from './words.ts';

/** Requests of one login in an app follow one another so soon, milliseconds. */
const NEAR = 600_000;

/** Ids of logins are longer than those of requests (runtime/trail.ts). */
const isOfLogin = (transaction: string): boolean => transaction.length > 20;

/** What changes at the Management API is told alone: it is no login. */
const isOfManagement = ({ type }: AnsweredEvent): boolean => type === 'sapi' || type === 'fapi';

/**
 * The queries of the log that find what belongs to an event: its transaction; and where that is a request of an app, which
 * logs in by several, those of the same user from the same address for the same application about that time.
 */
export function storyQueries(event: AnsweredEvent): string[] {
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

/** What belongs to an event of what was found, in order, and itself. */
export function storyOf(event: AnsweredEvent, found: readonly AnsweredEvent[]): AnsweredEvent[] {
  const belongs = (one: AnsweredEvent) =>
    one.transaction === event.transaction ||
    (!isOfManagement(one) && (one.transaction === undefined || !isOfLogin(one.transaction)));
  const all = new Map([event, ...found.filter(belongs)].map((one) => [one.log_id, one]));
  return [...all.values()].sort((a, b) => (a.log_id < b.log_id ? -1 : 1));
}

interface Outcome {
  is: 'in' | 'refused' | 'waiting' | 'other';
  /** Why it was refused, as the log says it. */
  why?: string | undefined;
}

/** Where somebody was asked for more, and it is not known yet whether they gave it. */
const ASKED: ReadonlySet<string> = new Set(['mfar', 'gd_start_auth', 'gd_start_enroll']);

/** What came of it in the end: what was last counts. */
export function outcomeOf(events: readonly AnsweredEvent[]): Outcome {
  let outcome: Outcome = { is: 'other' };
  for (const event of events) {
    if (event.type === 's') outcome = { is: 'in' };
    else if (ASKED.has(event.type)) outcome = { is: 'waiting' };
    // Of a logout, a message or a call that failed nobody was refused.
    else if (isBad(event) && !isOfManagement(event) && !['flo', 'fn'].includes(event.type))
      outcome = { is: 'refused', why: event.description ?? outcome.why };
  }
  return outcome;
}
