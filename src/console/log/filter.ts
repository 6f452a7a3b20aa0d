// What of the log is shown: the fields of its form, as queries of `GET /logs`. What an index tells (type, user, login, time) is
// asked for one value at a time, newest first, and put together here: so the store reads no more than a page of each.
import { typesNamed } from '../event-groups.ts';

const FIELDS = ['type', 'user', 'client', 'connection', 'ip', 'from', 'to', 'q', 'before'] as const;

export type LogFilter = Record<(typeof FIELDS)[number], string>;

/** Characters of one field. */
const LONGEST = 1_000;

/** The filter that an address names. */
export function readFilter(query: Readonly<Record<string, unknown>>): LogFilter {
  const one = (name: string) => {
    const value = query[name];
    return typeof value === 'string' ? value.trim().slice(0, LONGEST) : '';
  };
  return Object.fromEntries(FIELDS.map((name) => [name, one(name)])) as LogFilter;
}

/** Whether it means all. */
export const isOpen = (filter: LogFilter): boolean =>
  FIELDS.every((name) => name === 'before' || filter[name] === '');

/** The address of the log by a filter. */
export function hrefOf(path: string, filter: LogFilter, over: Partial<LogFilter> = {}): string {
  const set = Object.entries({ ...filter, ...over }).filter(([, value]) => value !== '');
  return set.length === 0 ? path : `${path}?${new URLSearchParams(set)}`;
}

/**
 * The queries that a filter is, whose answers are put together.
 * @param userIds ids of the users whom the field `user` names.
 */
export function queriesOf(filter: LogFilter, userIds: readonly string[]): (string | undefined)[] {
  const { type, user, client, connection, ip, q } = filter;
  const rest = [
    ...(client === '' ? [] : [`client_id:${quoted(client)}`]),
    ...(connection === '' ? [] : [`connection:${quoted(connection)}`]),
    ...(ip === '' ? [] : [`ip:${addressTerm(ip)}`]),
    ...timesOf(filter),
    ...(q === '' ? [] : [`(${q})`]),
  ];
  const types = type === '' ? [undefined] : typesNamed(type).map((one) => `type:${quoted(one)}`);
  const whose =
    user === ''
      ? [undefined]
      : [`user_name:${quoted(user)}`, ...new Set([user, ...userIds].map((id) => `user_id:${quoted(id)}`))];
  return types.flatMap((kind) =>
    whose.map((who) => {
      const all = [kind, who, ...rest].filter((one) => one !== undefined);
      return all.length === 0 ? undefined : all.join(' AND ');
    }),
  );
}

/** A text as the query language takes it, whatever is in it. */
export const quoted = (text: string): string => `"${text.replaceAll(/["\\]/g, '\\$&')}"`;

/** `203.0.113.*` is what begins so. */
function addressTerm(ip: string): string {
  return /^[\da-f.:]+\*$/i.test(ip) ? ip.replaceAll(':', '\\:') : quoted(ip);
}

/** By ids, which begin with the time, and by which events are in order. */
function timesOf({ from, to, before }: LogFilter): string[] {
  const [first, last] = [digitsOf(from), digitsOf(to)];
  return [
    ...(first === '' ? [] : [`log_id:[${first} TO *]`]),
    // All of the minute, or the day, that is named.
    ...(last === '' ? [] : [`log_id:[* TO ${last}~]`]),
    ...(/^[\da-f]+$/.test(before) ? [`log_id:[* TO ${before}}`] : []),
  ];
}

/** `2026-11-22T16:05` as ids begin with it; nothing of what is no time. */
function digitsOf(time: string): string {
  return /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d)?)?$/.test(time) ? time.replaceAll(/\D/g, '') : '';
}
