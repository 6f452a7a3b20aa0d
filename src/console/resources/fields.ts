// The fields of a form, made of what a call takes.
import { z } from 'zod';
import { isSecretName } from './secrets.ts';

type FieldKind = 'text' | 'secret' | 'number' | 'switch' | 'choice' | 'choices' | 'lines' | 'group' | 'json';

/** A member of a body, as it is asked for. */
export interface Field {
  /** Its members' names from the top of the body, joined by dots; what its form field is called. */
  path: string;
  /** Its own name, as the API has it. */
  name: string;
  kind: FieldKind;
  /** What its declaration says of it. */
  help?: string;
  isRequired: boolean;
  /** Whether null takes it away. */
  isNullable: boolean;
  usual?: unknown;
  least?: number;
  most?: number;
  isWhole?: boolean;
  longest?: number;
  pattern?: string;
  /** What may be chosen. */
  options?: readonly string[];
  /** Of a group. */
  fields?: readonly Field[];
}

/** The part of JSON Schema that forms are made of. */
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

/** Groups within groups; what is deeper is JSON. */
const DEEPEST = 3;

/** Where a body is no object with members of its own, it is one field of this name. */
export const WHOLE = '$';

/** The field of a record that is edited as a whole. */
export const WHOLE_FIELD: Field = {
  path: WHOLE,
  name: WHOLE,
  kind: 'json',
  isRequired: true,
  isNullable: false,
};

/** The fields of what a call takes. @param schema of its body or query. */
export function fieldsOf(schema: z.ZodType): Field[] {
  const json = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }) as JsonSchema;
  if (json.type === 'object' && hasMembers(json)) return membersOf(json, []);
  return [WHOLE_FIELD];
}

/** The fields of a query, whose members are all texts. */
export function queryFieldsOf(schema: z.ZodObject): Field[] {
  return fieldsOf(schema).map(({ kind, options, ...field }) => {
    if (kind === 'number') return { ...field, kind };
    // A flag may be written in several ways; people choose between two.
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

function fieldOf(given: JsonSchema, { name, path, isRequired }: Member): Field {
  const { schema, isNullable } = withoutNull(given);
  const { description = given.description, default: usual = given.default } = schema;
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

/** What a schema takes beside null. */
function withoutNull(given: JsonSchema): { schema: JsonSchema; isNullable: boolean } {
  if (Array.isArray(given.type)) {
    const types = given.type.filter((type) => type !== 'null');
    const isNullable = types.length < given.type.length;
    return { schema: { ...given, type: types.length === 1 ? types[0] : types }, isNullable };
  }
  const others = given.anyOf?.filter(({ type }) => type !== 'null') ?? [];
  if (given.anyOf === undefined || others.length === given.anyOf.length)
    return { schema: given, isNullable: false };
  const [only] = others;
  if (others.length > 1 || only === undefined)
    return { schema: { ...given, anyOf: others }, isNullable: true };
  // A member that may be left out and may be null is one within the other.
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
  if (schema.type === 'object' && hasMembers(schema) && path.length <= DEEPEST)
    return { kind: 'group', fields: membersOf(schema, path) };
  return { kind: 'json' };
}

/** Texts that a value must be one of. */
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
  const isSaid = (bound: number | undefined): bound is number =>
    bound !== undefined && Math.abs(bound) < Number.MAX_SAFE_INTEGER;
  return { isWhole, ...(isSaid(least) && { least }), ...(isSaid(maximum) && { most: maximum }) };
}
