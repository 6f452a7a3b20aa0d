// Random values that a JSON schema accepts or rejects, generated from a seed so that failures can be reproduced.

export interface JsonSchema {
  $ref?: string;
  $defs?: Record<string, JsonSchema>;
  type?: string | string[];
  const?: unknown;
  enum?: unknown[];
  anyOf?: JsonSchema[];
  oneOf?: JsonSchema[];
  allOf?: JsonSchema[];
  properties?: Record<string, JsonSchema>;
  required?: string[];
  additionalProperties?: boolean | JsonSchema;
  items?: JsonSchema;
  minItems?: number;
  minLength?: number;
  minimum?: number;
  maximum?: number;
  exclusiveMinimum?: number;
  pattern?: string;
}

type Draw = () => number;

export function pick<T>(draw: Draw, from: readonly T[]): T {
  return from[Math.floor(draw() * from.length)] as T;
}

/** Texts of which nearly every pattern accepts one. */
const TEXTS = [
  'abc',
  'https://app.example.test/callback',
  'someone@example.test',
  '+15550100200',
  '20260101',
  '1',
  '#3b5bdb',
  'con_ABCDEFGHIJKLMNOP',
  'en',
  'true',
];

/**
 * Returns a value that the schema accepts, as far as the schema tells. Optional members are present in half of the
 * values.
 */
export function goodValue(schema: JsonSchema, draw: Draw, root: JsonSchema = schema): unknown {
  if (schema.$ref !== undefined) {
    return goodValue(root.$defs?.[schema.$ref.split('/').at(-1) ?? ''] ?? {}, draw, root);
  }
  if (schema.const !== undefined) return schema.const;
  if (schema.enum !== undefined) return pick(draw, schema.enum);
  const choices = schema.anyOf ?? schema.oneOf;
  if (choices !== undefined) return goodValue(pick(draw, choices), draw, root);
  if (schema.allOf !== undefined) {
    return Object.assign({}, ...schema.allOf.map((one) => goodValue(one, draw, root)));
  }
  const type = Array.isArray(schema.type) ? pick(draw, schema.type) : schema.type;
  if (type === 'object') return goodObject(schema, draw, root);
  if (type === 'array') {
    const length = Math.max(schema.minItems ?? 0, Math.floor(draw() * 3));
    return Array.from({ length }, () => goodValue(schema.items ?? {}, draw, root));
  }
  return goodPlain(schema, type, draw);
}

function goodPlain(schema: JsonSchema, type: string | undefined, draw: Draw): unknown {
  if (type === 'string') {
    const { pattern, minLength = 0 } = schema;
    const fitting = pattern === undefined ? TEXTS : TEXTS.filter((text) => new RegExp(pattern).test(text));
    return (pick(draw, fitting) ?? 'x').padEnd(minLength, 'x');
  }
  if (type === 'integer' || type === 'number') {
    const least = schema.minimum ?? (schema.exclusiveMinimum ?? -1) + 1;
    return Math.min(least + Math.floor(draw() * 10), schema.maximum ?? Number.MAX_SAFE_INTEGER);
  }
  if (type === 'boolean') return draw() < 0.5;
  if (type === 'null') return null;
  return pick(draw, ['x', 1, true, {}, { a: 'b' }]);
}

function goodObject(schema: JsonSchema, draw: Draw, root: JsonSchema): Record<string, unknown> {
  const { properties = {}, required = [], additionalProperties } = schema;
  const object: Record<string, unknown> = {};
  for (const [name, member] of Object.entries(properties)) {
    if (required.includes(name) || draw() < 0.5) object[name] = goodValue(member, draw, root);
  }
  if (typeof additionalProperties === 'object') object.key = goodValue(additionalProperties, draw, root);
  return object;
}

/** Values that often cause errors in code that does not expect them. */
const HOSTILE: readonly unknown[] = [
  null,
  '',
  ' ',
  '\u0000',
  '../../etc/passwd',
  '😀'.repeat(300),
  'x'.repeat(5000),
  '{{7*7}}{% include "x" %}',
  'https://[::1',
  'javascript:alert(1)',
  '-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----',
  -1,
  0,
  1e308,
  0.1,
  2 ** 53,
  true,
  [],
  [null],
  [[[]]],
  {},
  { $ref: '#' },
  { constructor: { prototype: { x: 1 } } },
  { toString: 1, length: -1 },
  Array.from({ length: 300 }, () => 'x'),
];

/** Returns a value that violates the schema in one or two places. */
export function badValue(schema: JsonSchema, draw: Draw): unknown {
  const value = goodValue(schema, draw);
  return draw() < 0.2 ? pick(draw, HOSTILE) : spoiled(value, draw);
}

function spoiled(value: unknown, draw: Draw): unknown {
  if (Array.isArray(value)) {
    return value.length === 0 ? [pick(draw, HOSTILE)] : [...value.slice(1), spoiled(value[0], draw)];
  }
  if (typeof value !== 'object' || value === null) return pick(draw, HOSTILE);
  const names = Object.keys(value);
  if (names.length === 0 || draw() < 0.1)
    return { ...value, [pick(draw, ['length', 'id', 'x'])]: pick(draw, HOSTILE) };
  const name = pick(draw, names);
  return { ...value, [name]: spoiled((value as Record<string, unknown>)[name], draw) };
}

/** Returns a text for a path or a query. */
export function hostileText(draw: Draw): string {
  const value = pick(draw, HOSTILE);
  return typeof value === 'string' && value !== '' ? value.slice(0, 1000) : '%';
}
