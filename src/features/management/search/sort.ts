// The `sort` parameter: `sort=field:1` or `sort=field:-1`.
import { apiError } from '../management-errors.ts';

/** Parses a `sort` parameter. @throws AuthError 400 */
export function parseSort(text: string): { field: string; descending: boolean } {
  const found = /^([\w.]+):(-?1)$/.exec(text);
  if (found === null)
    throw apiError(
      400,
      "Query validation error: 'String does not match pattern ^(\\w+):(-1|1)$' on property sort.",
      'invalid_query_string',
    );
  return { field: found[1] ?? '', descending: found[2] === '-1' };
}

/**
 * Returns records in the order of the query's `sort`. The sort is stable; without `sort`, the order is unchanged.
 * @param fields the members that records can be sorted by.
 * @throws AuthError 400
 */
export function sortedBy<T extends object>(
  records: readonly T[],
  sort: unknown,
  fields: readonly string[] = [],
): readonly T[] {
  if (typeof sort !== 'string') return records;
  const { field, descending } = parseSort(sort);
  if (!fields.includes(field)) throw apiError(400, `Cannot sort by ${field}`, 'invalid_query_string');
  const textOf = (record: T) => String((record as Record<string, unknown>)[field] ?? '');
  return [...records].sort((a, b) => {
    const [first, second] = descending ? [textOf(b), textOf(a)] : [textOf(a), textOf(b)];
    return first === second ? 0 : first < second ? -1 : 1;
  });
}
