// What log events are searched and sorted by.
import type { Filter } from '../../store/contract.ts';
import { type Match, parseQuery } from './lucene.ts';
import { dateFilter, fieldWildcard, filterOf, NONE, rangeOf, wildcardOf } from './terms.ts';

/** By what they are called, where the members of an event are stored. */
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

/** What an event does not say itself, and is known by what it says. */
export interface LogNames {
  /** The values of a stored field whose record has a name, a strategy … that `is` so. */
  client_name(is: (value: string) => boolean): readonly string[];
  connection_id(is: (value: string) => boolean): readonly string[];
  strategy(is: (value: string) => boolean): readonly string[];
  strategy_type(is: (value: string) => boolean): readonly string[];
}

const NAMED = {
  client_name: 'client_id',
  connection_id: 'connection',
  strategy: 'connection',
  strategy_type: 'connection',
} as const;

/** Where a term without a field is looked for. */
const DEFAULTS = ['client_name', 'connection', 'description', 'ip', 'log_id', 'type', 'user_name'];

/** Where a member that events can be sorted by is stored. */
export const logSort = (field: string): string | undefined => STORED.get(field);

/** The filter that a query of logs means. @throws AuthError 400 */
export function logFilter(query: string, names: LogNames): Filter {
  return filterOf(parseQuery(query), (field, match) =>
    field === undefined
      ? { any: DEFAULTS.map((name) => logTerm(name, match, names)) }
      : logTerm(field, match, names),
  );
}

function logTerm(field: string, match: Match, names: LogNames): Filter {
  if (isNamed(field)) return { field: NAMED[field], in: names[field](judge(match)) };
  const stored = STORED.get(field);
  // What no record has matches none, as with the hosted service.
  if (stored === undefined) return NONE;
  if (field === 'date') return dateFilter(stored, match);
  if (match.kind === 'exists') return { field: stored, exists: true };
  if (match.kind === 'text') return equalTo(stored, match.text);
  if (match.kind === 'range') return rangeOf(stored, match, String);
  return fieldWildcard(stored, wildcardOf(match));
}

/** Those that few events have in common have an index. */
const INDEXES: Readonly<Record<string, string>> = {
  user_id: 'user',
  user_name: 'name',
  transaction: 'transaction',
};

function equalTo(field: string, value: string): Filter {
  const index = INDEXES[field];
  return index === undefined ? { field, equals: value } : { index, equals: value };
}

const isNamed = (field: string): field is keyof typeof NAMED => Object.hasOwn(NAMED, field);

/** Whether a value in memory is what a term means. @throws AuthError 400 */
function judge(match: Match): (value: string) => boolean {
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
