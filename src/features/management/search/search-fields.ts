// The search fields of log events.
import { ACTOR_FIELDS } from '../../../records/base/log-events.ts';
import type { Filter } from '../../../store/contract.ts';
import { type Match, parseQuery } from './lucene.ts';
import { dateFilter, fieldWildcard, filterOf, MATCHES_NOTHING, rangeOf, wildcardOf } from './terms.ts';

const STORED: ReadonlyMap<string, string> = new Map([
  ...[
    'type',
    'date',
    'description',
    'client_id',
    'connection',
    'user_id',
    'user_name',
    'ip',
    'transaction',
  ].map((name): [string, string] => [name, name]),
  ['log_id', 'id'],
  ['_id', 'id'],
]);

// docs/understand/decisions/management-api.md#the-application-and-connection-of-a-log-event-are-looked-up-when-it-is-read
/**
 * Resolves fields that an event does not have: they belong to its client or connection. Each function returns the
 * stored values (`client_id`, or connection name) of the records for whose field `is` returns true.
 */
export interface LogNames {
  client_name(is: (value: string) => boolean): readonly string[];
  connection_id(is: (value: string) => boolean): readonly string[];
  strategy(is: (value: string) => boolean): readonly string[];
  strategy_type(is: (value: string) => boolean): readonly string[];
}

const FIELDS_BY_NAME = {
  client_name: 'client_id',
  connection_id: 'connection',
  strategy: 'connection',
  strategy_type: 'connection',
} as const;

/** The fields that a term without a field is searched in. */
const DEFAULTS = ['client_name', 'connection', 'description', 'ip', 'log_id', 'type', 'user_name'];

/** Returns the stored member for a field that events can be sorted by. */
export const logSort = (field: string): string | undefined => STORED.get(field);

/** @throws AuthError 400 */
export function logFilter(query: string, names: LogNames): Filter {
  return filterOf(parseQuery(query), (field, match) =>
    field === undefined
      ? { any: DEFAULTS.map((name) => logTerm(name, match, names)) }
      : logTerm(field, match, names),
  );
}

/** Whoever acted for the user of an event, whether or not others acted for them. */
const ACTOR = 'actor';

function logTerm(field: string, match: Match, names: LogNames): Filter {
  if (field === ACTOR) return { any: ACTOR_FIELDS.map((stored) => storedTerm(stored, match)) };
  if (isFieldByName(field)) return { field: FIELDS_BY_NAME[field], in: names[field](valueTest(match)) };
  const stored = STORED.get(field);
  // An unknown field matches nothing, as at the hosted service.
  if (stored === undefined) return MATCHES_NOTHING;
  return field === 'date' ? dateFilter(stored, match) : storedTerm(stored, match);
}

function storedTerm(stored: string, match: Match): Filter {
  if (match.kind === 'exists') return { field: stored, exists: true };
  if (match.kind === 'text') return equalTo(stored, match.text);
  if (match.kind === 'range') return rangeOf(stored, match, String);
  return fieldWildcard(stored, wildcardOf(match));
}

/** Fields with an index, because few events share a value. */
const INDEXES: Readonly<Record<string, string>> = {
  user_id: 'user',
  user_name: 'name',
  transaction: 'transaction',
};

function equalTo(field: string, value: string): Filter {
  const index = INDEXES[field];
  return index === undefined ? { field, equals: value } : { index, equals: value };
}

const isFieldByName = (field: string): field is keyof typeof FIELDS_BY_NAME =>
  Object.hasOwn(FIELDS_BY_NAME, field);

/** Returns a test of values in memory for a term. @throws AuthError 400 */
function valueTest(match: Match): (value: string) => boolean {
  if (match.kind === 'exists') return () => true;
  if (match.kind === 'text') return (value) => value === match.text;
  if (match.kind === 'range') {
    const { from = '', to, isFromIncluded, isToIncluded } = match;
    return (value) =>
      value >= from &&
      (isFromIncluded || value !== from) &&
      (to === undefined || value <= to) &&
      (isToIncluded || value !== to);
  }
  const { prefix = '', contains = '', suffix = '' } = wildcardOf(match) ?? {};
  return (value) => {
    const rest = value.slice(prefix.length);
    return value.startsWith(prefix) && rest.includes(contains) && rest.endsWith(suffix);
  };
}
