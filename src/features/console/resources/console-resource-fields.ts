// Derives the fields of a form from the schema of a call.
import { z } from 'zod';
import { isSecretName } from './console-resource-secrets.ts';

type FieldKind = 'text' | 'secret' | 'number' | 'switch' | 'choice' | 'choices' | 'lines' | 'group' | 'json';

/** A member of a body, as a form field. */
export interface Field {
  /** Names of members from the top of the body, joined by dots; also the name of the form field. */
  path: string;
  name: string;
  kind: FieldKind;
  /** The description in the schema. */
  help?: string;
  isRequired: boolean;
  /** Whether null removes the member. */
  isNullable: boolean;
  usual?: unknown;
  least?: number;
  most?: number;
  isWhole?: boolean;
  longest?: number;
  pattern?: string;
  /** The permitted values. */
  options?: readonly string[];
  fields?: readonly Field[];
}

/** The part of JSON Schema that forms are derived from. */
interface JsonSchema {
  type?: string | readonly string[];
  const?: unknown;
  enum?: readonly unknown[];
  anyOf?: readonly JsonSchema[];
  properties?: Readonly<Record<string, JsonSchema>>;
  required?: readonly string[];
  additionalProperties?: boolean | JsonSchema;
  items?: JsonSchema;
  description?: string;
  default?: unknown;
  minimum?: number;
  maximum?: number;
  exclusiveMinimum?: number;
  maxLength?: number;
  pattern?: string;
}

/** The maximum depth of nested groups; deeper members are edited as JSON. */
const MAX_DEPTH = 3;

/** The name of the only field for a body that is not an object with known members. */
export const WHOLE = '$';

export const WHOLE_FIELD: Field = {
  path: WHOLE,
  name: WHOLE,
  kind: 'json',
  isRequired: true,
  isNullable: false,
};

/** @param schema the schema of its body or query. */
export function fieldsOf(schema: z.ZodType): Field[] {
  const json = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }) as JsonSchema;
  if (json.type === 'object' && hasMembers(json)) return membersOf(json, []);
  return [WHOLE_FIELD];
}

export function queryFieldsOf(schema: z.ZodObject): Field[] {
  return fieldsOf(schema).map(({ kind, options, ...field }) => {
    if (kind === 'number') return { ...field, kind };
    // A flag accepts several spellings; the form offers two.
    const isFlag = options?.includes('true') === true && options.includes('false');
    if (kind === 'choice' && options !== undefined)
      return { ...field, kind, options: isFlag ? ['true', 'false'] : options };
    return { ...field, kind: 'text' };
  });
}

const hasMembers = ({ properties = {} }: JsonSchema): boolean => Object.keys(properties).length > 0;

function membersOf({ properties = {}, required = [] }: JsonSchema, path: readonly string[]): Field[] {
  return Object.entries(properties).map(([name, schema]) =>
    fieldOf(schema, { name, path: [...path, name], isRequired: required.includes(name) }),
  );
}

interface Member {
  name: string;
  path: readonly string[];
  isRequired: boolean;
}

function fieldOf(fullSchema: JsonSchema, { name, path, isRequired }: Member): Field {
  const { schema, isNullable } = withoutNull(fullSchema);
  const { description = fullSchema.description, default: usual = fullSchema.default } = schema;
  return {
    path: path.join('.'),
    name,
    isRequired: isRequired && usual === undefined,
    isNullable,
    ...(description !== undefined && { help: description.replaceAll('`', '') }),
    ...(usual !== undefined && { usual }),
    ...shapeOf(schema, name, path),
  };
}

/** Separates null from the other values that a schema accepts. */
function withoutNull(fullSchema: JsonSchema): { schema: JsonSchema; isNullable: boolean } {
  if (Array.isArray(fullSchema.type)) {
    const types = fullSchema.type.filter((type) => type !== 'null');
    const isNullable = types.length < fullSchema.type.length;
    return { schema: { ...fullSchema, type: types.length === 1 ? types[0] : types }, isNullable };
  }
  const others = fullSchema.anyOf?.filter(({ type }) => type !== 'null') ?? [];
  if (fullSchema.anyOf === undefined || others.length === fullSchema.anyOf.length)
    return { schema: fullSchema, isNullable: false };
  const [only] = others;
  if (others.length > 1 || only === undefined)
    return { schema: { ...fullSchema, anyOf: others }, isNullable: true };
  // A member that is both optional and nullable has one wrapper inside the other.
  return { schema: withoutNull(only).schema, isNullable: true };
}

type Shape = Pick<Field, 'kind'> & Partial<Field>;

function shapeOf(schema: JsonSchema, name: string, path: readonly string[]): Shape {
  const options = optionsOf(schema);
  if (options !== undefined) return { kind: 'choice', options };
  if (schema.type === 'boolean') return { kind: 'switch' };
  if (schema.type === 'integer' || schema.type === 'number') return { kind: 'number', ...boundsOf(schema) };
  if (schema.type === 'string') {
    const { maxLength: longest, pattern } = schema;
    return {
      kind: isSecretName(name) ? 'secret' : 'text',
      ...(longest !== undefined && { longest }),
      ...(pattern !== undefined && { pattern }),
    };
  }
  if (schema.type === 'array') return listShape(schema, name);
  if (schema.type === 'object' && hasMembers(schema) && path.length <= MAX_DEPTH)
    return { kind: 'group', fields: membersOf(schema, path) };
  return { kind: 'json' };
}

/** Returns the permitted values of a schema that lists strings. */
function optionsOf({ const: only, enum: several, anyOf }: JsonSchema): readonly string[] | undefined {
  const all = only === undefined ? (several ?? anyOf?.map((one) => one.const)) : [only];
  return all?.every((one): one is string => typeof one === 'string') === true ? all : undefined;
}

function listShape({ items = {} }: JsonSchema, name: string): Shape {
  const options = optionsOf(items);
  if (options !== undefined) return { kind: 'choices', options };
  return { kind: items.type === 'string' && !isSecretName(name) ? 'lines' : 'json' };
}

function boundsOf({ type, minimum, exclusiveMinimum, maximum }: JsonSchema): Partial<Field> {
  const isWhole = type === 'integer';
  const least =
    minimum ?? (exclusiveMinimum === undefined ? undefined : exclusiveMinimum + (isWhole ? 1 : 0));
  const isMeaningful = (bound: number | undefined): bound is number =>
    bound !== undefined && Math.abs(bound) < Number.MAX_SAFE_INTEGER;
  return { isWhole, ...(isMeaningful(least) && { least }), ...(isMeaningful(maximum) && { most: maximum }) };
}
