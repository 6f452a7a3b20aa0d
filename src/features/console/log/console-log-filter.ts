// Turns the filter form of the log into queries of `GET /logs`. Members with an index (type, user, login, time) are
// queried for one value at a time, newest first, and the answers are merged, so that the store reads no more than one
// page of each.
import { typesNamed } from '../event-groups.ts';

const FIELDS = ['type', 'user', 'client', 'actor', 'connection', 'ip', 'from', 'to', 'q', 'before'] as const;

export type LogFilter = Record<(typeof FIELDS)[number], string>;

/** The maximum length of a field, characters. */
const MAX_FIELD_LENGTH = 1_000;

export function readFilter(query: Readonly<Record<string, unknown>>): LogFilter {
  const fieldText = (name: string) => {
    const value = query[name];
    return typeof value === 'string' ? value.trim().slice(0, MAX_FIELD_LENGTH) : '';
  };
  return Object.fromEntries(FIELDS.map((name) => [name, fieldText(name)])) as LogFilter;
}

export const isUnfiltered = (filter: LogFilter): boolean =>
  FIELDS.every((name) => name === 'before' || filter[name] === '');

export function hrefOf(path: string, filter: LogFilter, over: Partial<LogFilter> = {}): string {
  const parameters = Object.entries({ ...filter, ...over }).filter(([, value]) => value !== '');
  return parameters.length === 0 ? path : `${path}?${new URLSearchParams(parameters)}`;
}

/**
 * Returns the queries of a filter, whose answers are to be merged.
 * @param userIds the ids of the users whom the field `user` names.
 */
export function queriesOf(filter: LogFilter, userIds: readonly string[]): (string | undefined)[] {
  const { type, user, client, actor, connection, ip, q } = filter;
  const rest = [
    ...(client === '' ? [] : [`client_id:${quoted(client)}`]),
    ...(actor === '' ? [] : [`actor:${quoted(actor)}`]),
    ...(connection === '' ? [] : [`connection:${quoted(connection)}`]),
    ...(ip === '' ? [] : [`ip:${addressTerm(ip)}`]),
    ...timesOf(filter),
    ...(q === '' ? [] : [`(${q})`]),
  ];
  const types = type === '' ? [undefined] : typesNamed(type).map((one) => `type:${quoted(one)}`);
  const userTerms =
    user === ''
      ? [undefined]
      : [`user_name:${quoted(user)}`, ...new Set([user, ...userIds].map((id) => `user_id:${quoted(id)}`))];
  return types.flatMap((kind) =>
    userTerms.map((who) => {
      const all = [kind, who, ...rest].filter((one) => one !== undefined);
      return all.length === 0 ? undefined : all.join(' AND ');
    }),
  );
}

export const quoted = (text: string): string => `"${text.replaceAll(/["\\]/g, '\\$&')}"`;

/** Returns the search term for an address; `203.0.113.*` searches by prefix. */
function addressTerm(ip: string): string {
  return /^[\da-f.:]+\*$/i.test(ip) ? ip.replaceAll(':', '\\:') : quoted(ip);
}

/** Filters by id: ids begin with the time, and events are ordered by them. */
function timesOf({ from, to, before }: LogFilter): string[] {
  const [first, last] = [digitsOf(from), digitsOf(to)];
  return [
    ...(first === '' ? [] : [`log_id:[${first} TO *]`]),
    // Includes the whole of the named minute or day.
    ...(last === '' ? [] : [`log_id:[* TO ${last}~]`]),
    ...(/^[\da-f]+$/.test(before) ? [`log_id:[* TO ${before}}`] : []),
  ];
}

/** Returns a time such as `2026-11-22T16:05` as ids begin with it; empty for anything else. */
function digitsOf(time: string): string {
  return /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d)?)?$/.test(time) ? time.replaceAll(/\D/g, '') : '';
}
