// The common part of searches of users and logs: filters from expressions, wildcards and dates.
import type { Filter } from '../../../store/contract.ts';
import { apiError } from '../management-errors.ts';
import type { Expression, Match } from './lucene.ts';

export const searchError = (message: string) => apiError(400, message, 'invalid_query_string');

/** Highest number of comparisons that read every record. Each blocks the thread for tens of milliseconds. */
const MAX_SCANS = 40;

export const MATCHES_NOTHING: Filter = { any: [] };

/**
 * @param term returns the filter of one term; its field is undefined if the default fields are to be searched
 * @throws AuthError 400 if the filter has too many comparisons that read every record
 */
export function filterOf(
  expression: Expression,
  term: (field: string | undefined, match: Match) => Filter,
): Filter {
  const filter = toFilter(expression, term);
  if (scansOf(filter) > MAX_SCANS) throw searchError('The search query is too complex.');
  return filter;
}

function toFilter(expression: Expression, term: (field: string | undefined, match: Match) => Filter): Filter {
  if ('all' in expression) return { all: expression.all.map((one) => toFilter(one, term)) };
  if ('any' in expression) return { any: expression.any.map((one) => toFilter(one, term)) };
  if ('not' in expression) return { not: toFilter(expression.not, term) };
  return term(expression.field, expression.match);
}

function scansOf(filter: Filter): number {
  if ('all' in filter) return filter.all.reduce((sum, one) => sum + scansOf(one), 0);
  if ('any' in filter) return filter.any.reduce((sum, one) => sum + scansOf(one), 0);
  if ('not' in filter) return scansOf(filter.not);
  if ('of' in filter || ('index' in filter && 'equals' in filter)) return 0;
  if ('index' in filter) return filter.contains === undefined && filter.suffix === undefined ? 0 : 1;
  if (filter.field === 'id' && 'equals' in filter) return 0;
  // A member of metadata costs more: the store resolves its path in every record.
  return filter.field.includes('.') ? 4 : 1;
}

/** A wildcard: the beginning of the text, a part within, and the end. */
interface Wildcard {
  prefix: string;
  contains?: string;
  suffix?: string;
}

/** The shortest text that may follow a leading wildcard, in characters. */
const MIN_WILDCARD_TEXT = 3;

/**
 * Returns the wildcard of a pattern: `a*`, `*abc`, `*abc*` or `a*b`; undefined for `*` alone.
 * @throws AuthError 400 for other patterns.
 */
export function wildcardOf({ parts }: Extract<Match, { kind: 'pattern' }>): Wildcard | undefined {
  const [prefix = '', ...rest] = parts;
  const texts = rest.filter((part) => part !== '');
  const [text] = texts;
  if (text === undefined) return prefix === '' ? undefined : { prefix };
  if (texts.length > 1 || (prefix !== '' && rest.at(-1) === '')) {
    throw searchError('A term may have a wildcard at its beginning, at its end, at both, or one within.');
  }
  if (prefix === '' && [...text].length < MIN_WILDCARD_TEXT) {
    throw searchError(`A wildcard before a text needs at least ${MIN_WILDCARD_TEXT} characters.`);
  }
  return rest.at(-1) === '' ? { prefix, contains: text } : { prefix, suffix: text };
}

export function fieldWildcard(field: string, wildcard: Wildcard | undefined): Filter {
  if (wildcard === undefined) return { field, exists: true };
  const { prefix, contains, suffix } = wildcard;
  const all: Filter[] = [
    ...(prefix === '' ? [] : [{ field, prefix }]),
    ...(contains === undefined ? [] : [{ field, contains }]),
    ...(suffix === undefined ? [] : [{ field, suffix }]),
  ];
  const [only] = all;
  return all.length === 1 && only !== undefined ? only : { all };
}

type Range = Extract<Match, { kind: 'range' }>;

/** @param readAs converts a bound to the type of the stored values. */
export function rangeOf<T extends string | number>(
  field: string,
  range: Range,
  readAs: (text: string) => T,
): Filter {
  const from = range.from === undefined ? undefined : readAs(range.from);
  const to = range.to === undefined ? undefined : readAs(range.to);
  const excluded = [
    ...(range.isFromIncluded || from === undefined ? [] : [from]),
    ...(range.isToIncluded || to === undefined ? [] : [to]),
  ];
  const bounds: Filter = {
    field,
    ...(from === undefined ? {} : { from }),
    ...(to === undefined ? {} : { to }),
  };
  return excluded.length === 0 ? bounds : { all: [bounds, { not: { field, in: excluded } }] };
}

/** @throws AuthError 400 if it is not a number. */
export function numberOf(text: string): number {
  const number = Number(text);
  if (text.trim() === '' || Number.isNaN(number)) throw searchError(`"${short(text)}" is not a number.`);
  return number;
}

const DATE = /^\d{4}(-\d\d(-\d\d(T\d\d(:\d\d(:\d\d(\.\d{1,3})?)?)?(Z|[+-]\d\d:?\d\d)?)?)?)?$/;

/** Sorts after every character that can continue a date. */
const LATEST = '~';

/**
 * Returns a date in UTC, as precise as it was written: `2026-05` stands for that month.
 * @throws AuthError 400 if it is not a date.
 */
function dateOf(text: string): string {
  if (!DATE.test(text)) throw searchError(`"${short(text)}" is not a date.`);
  if (!/[+-]\d\d:?\d\d$/.test(text) || !text.includes('T')) return text.replace(/Z$/, '');
  const time = new Date(text.replace(/(\d\d):?(\d\d)$/, '$1:$2'));
  if (Number.isNaN(time.getTime())) throw searchError(`"${short(text)}" is not a date.`);
  return time.toISOString().replace('.000Z', '');
}

/**
 * Returns the filter of a field with dates (ISO 8601, UTC). A date stands for the whole day, hour and so on that it
 * names.
 */
export function dateFilter(field: string, match: Match): Filter {
  if (match.kind === 'exists') return { field, exists: true };
  if (match.kind === 'text') return { field, prefix: dateOf(match.text) };
  if (match.kind === 'pattern') return fieldWildcard(field, wildcardOf(match));
  const { from, to, isFromIncluded, isToIncluded } = match;
  const bounds: Filter = {
    field,
    ...(from === undefined ? {} : { from: dateOf(from) + (isFromIncluded ? '' : LATEST) }),
    ...(to === undefined ? {} : { to: dateOf(to) + (isToIncluded ? LATEST : '') }),
  };
  if (to === undefined || isToIncluded) return bounds;
  return { all: [bounds, { not: { field, prefix: dateOf(to) } }] };
}

const short = (text: string): string => (text.length > 40 ? `${text.slice(0, 40)}…` : text);
