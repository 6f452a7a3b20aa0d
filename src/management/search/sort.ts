// `sort=field:1` and `sort=field:-1`.
import { apiError } from '../errors.ts';

/** @throws AuthError 400 */
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
