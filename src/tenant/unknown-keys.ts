// Finds unknown keys of a tenant file at any depth, so that nobody relies on a misspelt setting.
import { z } from 'zod';

/** The warning of an unknown key. @param at its path. */
export const unknownKeyWarning = (at: string) => `${at} is not known here: it is kept, and has no effect`;

/** Returns a warning for each key of a document that its schema does not know. */
export function unknownKeys(document: unknown, schema: unknown, path = ''): string[] {
  const known = unwrapped(schema);
  if (known instanceof z.ZodArray && Array.isArray(document)) {
    return document.flatMap((item, index) => unknownKeys(item, known.element, `${path}[${index}]`));
  }
  if (!(known instanceof z.ZodObject) || typeof document !== 'object' || document === null) return [];
  return Object.entries(document).flatMap(([key, value]) => {
    const at = path === '' ? key : `${path}.${key}`;
    return Object.hasOwn(known.shape, key)
      ? unknownKeys(value, known.shape[key], at)
      : [unknownKeyWarning(at)];
  });
}

/** Returns a schema without optional and default wrappers, and without the transform that prepares its input. */
function unwrapped(schema: unknown): unknown {
  if (schema instanceof z.ZodPipe && schema.in instanceof z.ZodTransform) return unwrapped(schema.out);
  const optional =
    schema instanceof z.ZodOptional || schema instanceof z.ZodDefault || schema instanceof z.ZodPrefault;
  return optional ? unwrapped(schema.unwrap()) : schema;
}

/**
 * The sections where an unknown key stays a fault. The members of a custom claim say to whom it is given, and without
 * a misspelt one everybody would get it; no other tool writes them.
 */
const STRICT_SECTIONS: readonly PropertyKey[] = ['customClaims'];

/**
 * Parses a document. Where its schema is one that the Management API has, too, which refuses unknown keys, they are left out
 * with a warning: in a file no unknown key is a fault, because files come from other versions and other tools, except in
 * {@link STRICT_SECTIONS}.
 */
export function parseWithoutUnknown<T>(
  document: unknown,
  schema: z.ZodType<T>,
): { result: z.ZodSafeParseResult<T>; warnings: string[] } {
  const warnings: string[] = [];
  for (let read = document; ; ) {
    const result = schema.safeParse(read);
    const refused = (result.error?.issues ?? []).flatMap((issue) =>
      issue.code === 'unrecognized_keys' && !STRICT_SECTIONS.includes(issue.path[0] ?? '')
        ? issue.keys.map((key) => [...issue.path, key])
        : [],
    );
    const known = refused.length === 0 ? read : structuredClone(read);
    const removed = refused.filter((path) => remove(known, path));
    if (removed.length === 0) return { result, warnings };
    warnings.push(...removed.map((path) => `${z.core.toDotPath(path)} is not known here: it is left out`));
    read = known;
  }
}

/** Removes a member. @returns false where there is none. */
function remove(document: unknown, [step = '', ...rest]: readonly PropertyKey[]): boolean {
  if (typeof document !== 'object' || document === null) return false;
  return rest.length === 0
    ? Object.hasOwn(document, step) && Reflect.deleteProperty(document, step)
    : remove(Reflect.get(document, step), rest);
}
