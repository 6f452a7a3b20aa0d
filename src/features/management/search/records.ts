// Applies the search syntax to records in memory, for collections that are small.
import { type Expression, type Match, parseQuery } from './lucene.ts';
import { searchError, wildcardOf } from './terms.ts';

type Item = Readonly<Record<string, unknown>>;

/**
 * Returns a filter for a query. It compares members that are strings or booleans, and ignores case.
 * @param fields the searchable members; a term without a field is searched in all of them.
 * @throws AuthError 400
 */
export function recordFilter(query: string, fields: readonly string[]): (item: Item) => boolean {
  return predicateOf(parseQuery(query), fields);
}

function predicateOf(expression: Expression, fields: readonly string[]): (item: Item) => boolean {
  if ('all' in expression) {
    const all = expression.all.map((one) => predicateOf(one, fields));
    return (item) => all.every((one) => one(item));
  }
  if ('any' in expression) {
    const any = expression.any.map((one) => predicateOf(one, fields));
    return (item) => any.some((one) => one(item));
  }
  if ('not' in expression) {
    const one = predicateOf(expression.not, fields);
    return (item) => !one(item);
  }
  const { field, match } = expression;
  const searchedFields = field === undefined ? fields : fields.filter((one) => one === field);
  const isMatch = valueTest(match);
  return (item) =>
    searchedFields.some((one) => item[one] !== undefined && isMatch(String(item[one]).toLowerCase()));
}

function valueTest(match: Match): (value: string) => boolean {
  if (match.kind === 'exists') return () => true;
  if (match.kind === 'range') throw searchError('There are no ranges here.');
  if (match.kind === 'text') return (value) => value === match.text.toLowerCase();
  const wildcard = wildcardOf({ kind: 'pattern', parts: match.parts.map((part) => part.toLowerCase()) });
  if (wildcard === undefined) return () => true;
  const { prefix, contains = '', suffix = '' } = wildcard;
  return (value) =>
    value.length >= prefix.length + suffix.length &&
    value.startsWith(prefix) &&
    value.includes(contains) &&
    value.endsWith(suffix);
}
