// The calls for settings that deploy tools write and read back.
import { z } from 'zod';
import type { Call } from '../call.ts';
import { documentResourceCalls } from '../document-calls.ts';
import type { DocumentDependencies } from '../document-resource.ts';
import { idOf, letters } from '../ids.ts';
import { notFound } from '../resource.ts';
import type { StoredSetting } from './stored-setting.ts';
import { STORED_SETTINGS } from './stored-settings.ts';

/** Returns the calls of one kind. Query parameters that are members of the record filter the list. */
function callsOf({
  prefix,
  key,
  isCursorOnly = false,
  required,
  optional = {},
  fixed = {},
  missing,
  ...kept
}: StoredSetting) {
  const { path, name: called, filters = {} } = kept;
  const named = z.strictObject(required);
  const rest = z.strictObject(optional).partial();
  return documentResourceCalls({
    ...kept,
    kind: path.slice(1),
    newId: (random) =>
      prefix === 'ap' || prefix === 'af' ? `${prefix}_${letters(22, random)}` : idOf(prefix, random),
    createBody: z.strictObject({ ...rest.shape, ...z.strictObject(fixed).partial().shape, ...named.shape }),
    patchBody: z.strictObject({ ...nullable(optional), ...named.partial().shape }),
    list: { key, isCursorOnly },
    matches: (item, query) =>
      Object.keys(filters).every(
        (filter) => query[filter] === undefined || !(filter in item) || item[filter] === query[filter],
      ),
    missing: notFound(missing ?? `The ${called} does not exist`),
    taken: `There is such a ${called} already.`,
  });
}

/** Returns the members with null allowed, which removes a member. */
function nullable(shape: z.ZodRawShape): z.ZodRawShape {
  return Object.fromEntries(
    Object.entries(shape).map(([member, schema]) => [member, z.optional(z.nullable(schema as z.ZodType))]),
  );
}

/** The calls for all kinds. */
export const storedSettingCalls: Call<DocumentDependencies>[] = STORED_SETTINGS.flatMap(callsOf);
