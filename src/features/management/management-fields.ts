// The query parameters `fields` and `include_fields`, which select the top-level members of a response.
import { z } from 'zod';

/** A boolean of a query string. */
export const flag = z
  .enum(['true', 'false', '1', '0', ''])
  .transform((text) => text === 'true' || text === '1');

/** Metadata of a record other than a user: texts by names. @param most how many, of the record as it is stored. */
export const metadataTexts = (most: number) =>
  z
    .record(z.string().max(255), z.string().max(255).nullable())
    .refine((all) => Object.keys(all).length <= most, `At most ${most} keys`);

/** A query parameter that may be repeated, or indexed (`strategy[0]`): a text or an array of texts. */
export const repeatable = z.union([z.string(), z.array(z.string())]);

/** The parameters of a search. Clients in Go send the version of its syntax beside each query. */
export const searchQuery = (maxLength: number) => ({
  q: z.string().max(maxLength).optional(),
  search_engine: z
    .string()
    .refine((version) => version === 'v3', 'Only search_engine v3 is supported')
    .optional(),
});

export const fieldsQuery = {
  fields: z.string().max(1024).optional(),
  include_fields: flag.optional(),
};

interface FieldsQuery {
  fields?: string | undefined;
  include_fields?: boolean | undefined;
}

/**
 * Returns the members of a record that a query asks for: the named ones, or all but those.
 * @param always members that are returned besides the named ones.
 */
export function selectFields(
  record: object,
  { fields, include_fields: include = true }: FieldsQuery,
  always: readonly string[] = [],
): object {
  const names = new Set(
    (fields ?? '')
      .split(',')
      .map((name) => name.trim())
      .filter((name) => name !== ''),
  );
  if (names.size === 0) return record;
  if (include) for (const name of always) names.add(name);
  return Object.fromEntries(Object.entries(record).filter(([name]) => names.has(name) === include));
}
