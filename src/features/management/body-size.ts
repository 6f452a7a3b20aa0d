// The largest body of a call follows from its schema: what the schema accepts must not be too long to send.
import { z } from 'zod';

/** What a member may take whose schema does not say how long it is; as much as any other request, bytes. */
const OPEN_BYTES = 56 * 1024;

/** The most of any call, bytes. Bodies are read into memory, so the sum of the members of a schema is not enough. */
const MAX_CALL_BYTES = 4 * 1024 * 1024;

/** JSON may write a UTF-16 unit as `\uXXXX` (RFC 8259 §7), and some clients do so for all but ASCII. */
const MAX_BYTES_OF_CHARACTER = 6;

/** Numbers, booleans and null. */
const SCALAR_BYTES = 32;

/** The name under which a schema says how many characters its values may have as JSON. */
const MAX_JSON_LENGTH = 'x-max-json-length';

/** Schemas below this depth count as open; those that contain themselves have no end. */
const MAX_DEPTH = 12;

/**
 * Returns a schema that says how many characters its values may have as JSON, where its own members do not say it. Whoever
 * stores the values checks it.
 */
export function withJsonLength<T extends z.ZodType>(schema: T, characters: number): T {
  return schema.meta({ [MAX_JSON_LENGTH]: characters });
}

/** Returns how long the body of a call may be, in bytes: what its schema allows, within what the server can hold. */
export function largestBodyOf(schema: z.ZodType): number {
  return Math.min(Math.max(bytesOf(schema, 0), OPEN_BYTES), MAX_CALL_BYTES);
}

const textBytes = (length: number) => MAX_BYTES_OF_CHARACTER * length + 2;
const sum = (sizes: readonly number[]) => sizes.reduce((total, size) => total + size, 0);

/** Returns how many characters or elements a schema allows; undefined if it does not say. */
function maxLengthOf({ checks = [] }: z.core.$ZodTypeDef): number | undefined {
  const lengths = checks.flatMap(({ _zod: { def } }) => {
    const { maximum, length } = def as { maximum?: unknown; length?: unknown };
    if (def.check === 'max_length' && typeof maximum === 'number') return [maximum];
    return def.check === 'length_equals' && typeof length === 'number' ? [length] : [];
  });
  return lengths.length === 0 ? undefined : Math.min(...lengths);
}

/** Returns the most bytes that a value may take before it is parsed. */
function bytesOf(schema: z.core.$ZodType, depth: number): number {
  const { [MAX_JSON_LENGTH]: length } = z.globalRegistry.get(schema) ?? {};
  if (typeof length === 'number') return textBytes(length);
  if (depth > MAX_DEPTH) return OPEN_BYTES;
  const of = (one: z.core.$ZodType) => bytesOf(one, depth + 1);
  const { def } = (schema as z.core.$ZodTypes)._zod;
  const maximum = maxLengthOf(def);
  switch (def.type) {
    case 'string':
      return maximum === undefined ? OPEN_BYTES : textBytes(maximum);
    case 'array':
      return maximum === undefined ? OPEN_BYTES : maximum * (of(def.element) + 1) + 2;
    case 'object':
      return (
        sum(Object.entries(def.shape).map(([name, one]) => textBytes(name.length) + of(one) + 2)) +
        (def.catchall === undefined ? 0 : of(def.catchall))
      );
    case 'union':
      return Math.max(...def.options.map(of));
    case 'intersection':
      return of(def.left) + of(def.right);
    case 'tuple':
      return sum(def.items.map(of));
    case 'enum':
      return Math.max(...Object.values(def.entries).map((value) => textBytes(String(value).length)));
    case 'literal':
      return Math.max(...def.values.map((value) => textBytes(String(value).length)));
    case 'pipe':
      return of(def.in);
    case 'optional':
    case 'nullable':
    case 'nonoptional':
    case 'default':
    case 'prefault':
    case 'readonly':
    case 'catch':
      return of(def.innerType);
    case 'number':
    case 'boolean':
    case 'null':
      return SCALAR_BYTES;
    case 'never':
    case 'undefined':
      return 0;
    default:
      return OPEN_BYTES;
  }
}
