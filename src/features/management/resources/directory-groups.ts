// Groups of a directory that are selected for synchronization.
import { z } from 'zod';
import { apiError } from '../errors.ts';

/** Groups to synchronize, for `synchronize_groups: selected`. */
export const groups = z
  .array(
    z.strictObject({
      id: z.string().min(1).max(255),
      name: z.string().max(255).optional(),
      email: z.email("Object didn't pass validation for format email: ").max(320).optional(),
      direct_members_count: z.int().min(0).optional(),
    }),
  )
  .max(100);
export type Group = z.output<typeof groups>[number];

/** Returns the groups without repeated ids; the last one of an id is kept. */
export const unique = (groups: readonly Group[]): Group[] => [
  ...new Map(groups.map((one) => [one.id, one])).values(),
];

/** Returns the groups without those whose ids others have. */
export function without(groups: readonly Group[], others: readonly Group[]): Group[] {
  const ids = new Set(others.map(({ id }) => id));
  return groups.filter(({ id }) => !ids.has(id));
}

/**
 * Returns a test for groups by name or address: exact, or by prefix as in `name:engineering*`. Case is ignored.
 * @throws AuthError 400
 */
export function matching(q: string | undefined): (group: Group) => boolean {
  if (q === undefined) return () => true;
  const [, field, start = '', wildcard] = /^(name|email):"?([^"*]*)"?(\*)?$/.exec(q) ?? [];
  if (field !== 'name' && field !== 'email')
    throw apiError(400, 'Groups are searched by name or email.', 'invalid_query_string');
  const wanted = start.toLowerCase();
  return (group) => {
    const value = group[field]?.toLowerCase() ?? '';
    return wildcard === undefined ? value === wanted : value.startsWith(wanted);
  };
}
