// Finds unknown keys of a tenant file at any depth, so that nobody relies on a misspelt setting.
import { z } from 'zod';

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
      : [`${at} is not known here: it is kept, and has no effect`];
  });
}

/** Returns a schema without optional and default wrappers, and without the transform that prepares its input. */
function unwrapped(schema: unknown): unknown {
  if (schema instanceof z.ZodPipe && schema.in instanceof z.ZodTransform) return unwrapped(schema.out);
  const optional =
    schema instanceof z.ZodOptional || schema instanceof z.ZodDefault || schema instanceof z.ZodPrefault;
  return optional ? unwrapped(schema.unwrap()) : schema;
}
