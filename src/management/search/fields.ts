// What users and logs are searched by, and the store's filter that a query means.
import type { Filter } from '../../store/contract.ts';
import { apiError } from '../errors.ts';
import { type Expression, type Match, parseQuery } from './lucene.ts';

/** A field of the search language: where it is stored, and what its values are. */
type Kind = 'text' | 'number' | 'boolean';
type Fields = Readonly<Record<string, { stored: string; kind: Kind }>>;

const text = (stored: string) => ({ stored, kind: 'text' as const });

const LOGS: Fields = {
  type: text('type'),
  date: text('date'),
  client_id: text('client_id'),
  connection: text('connection'),
  user_id: text('user_id'),
  user_name: text('user_name'),
  ip: text('ip'),
  log_id: text('id'),
};

/** Where the members of a log event that a list can be sorted by are stored. */
export const LOG_FIELDS: Readonly<Record<string, string | undefined>> = Object.fromEntries(
  Object.entries(LOGS).map(([name, { stored }]) => [name, stored]),
);

/** Where a term without a field is looked for. */
const LOG_DEFAULTS = ['client_id', 'connection', 'ip', 'log_id', 'type', 'user_name'];

/** The filter that a query of logs means. @throws AuthError 400 */
export function logFilter(query: string): Filter {
  return filterOf(parseQuery(query), LOGS, LOG_DEFAULTS);
}

function filterOf(expression: Expression, fields: Fields, defaults: readonly string[]): Filter {
  if ('all' in expression) return { all: expression.all.map((one) => filterOf(one, fields, defaults)) };
  if ('any' in expression) return { any: expression.any.map((one) => filterOf(one, fields, defaults)) };
  if ('not' in expression) return { not: filterOf(expression.not, fields, defaults) };
  const { field, match } = expression;
  if (field === undefined) return { any: defaults.map((name) => comparison(fields[name], match)) };
  // What no record has matches none, as with the hosted service.
  return fields[field] === undefined ? { any: [] } : comparison(fields[field], match);
}

function comparison(field: Fields[string] | undefined, match: Match): Filter {
  if (field === undefined) return { any: [] };
  const { stored, kind } = field;
  if (match.kind === 'exists') return { field: stored, exists: true };
  if (match.kind === 'text') {
    const equals = valueIn(kind, match.text);
    return equals === undefined ? { any: [] } : { field: stored, equals };
  }
  if (match.kind === 'range') return rangeOf(stored, kind, match);
  const [prefix = '', ...rest] = match.parts;
  if (rest.every((part) => part === '')) {
    return prefix === '' ? { field: stored, exists: true } : { field: stored, prefix };
  }
  throw apiError(400, 'Wildcards are supported at the end of a term.', 'invalid_query_string');
}

function rangeOf(stored: string, kind: Kind, match: Extract<Match, { kind: 'range' }>): Filter {
  const from = match.from === undefined ? undefined : valueIn(kind, match.from);
  const to = match.to === undefined ? undefined : valueIn(kind, match.to);
  const bounds: Filter = {
    field: stored,
    ...(from === undefined || typeof from === 'boolean' ? {} : { from }),
    ...(to === undefined || typeof to === 'boolean' ? {} : { to }),
  };
  const excluded = [
    ...(match.isFromIncluded || from === undefined ? [] : [from]),
    ...(match.isToIncluded || to === undefined ? [] : [to]),
  ];
  if (excluded.length === 0) return bounds;
  return { all: [bounds, { not: { field: stored, in: excluded } }] };
}

/** @returns undefined for a text that no value of the kind is written as. */
function valueIn(kind: Kind, written: string): string | number | boolean | undefined {
  if (kind === 'text') return written;
  if (kind === 'boolean') return written === 'true' ? true : written === 'false' ? false : undefined;
  const number = Number(written);
  return written.trim() === '' || Number.isNaN(number) ? undefined : number;
}
