// Reads the fields of a request body. Handlers read every field here, so that none gets a value of an unexpected
// type.
import type { Context } from 'koa';
import { AuthError } from './errors.ts';

/** Unchecked fields. JSON can hold any value; a form or a query holds strings and lists of strings. */
export type Fields = Readonly<Record<string, unknown>>;

/** The errors by which an endpoint reports a faulty body. */
export interface FieldErrors {
  notObject(): AuthError;
  missing(name: string): AuthError;
  /** For a value that is not a string, or is too long. */
  invalid(name: string, value: unknown): AuthError;
  /** The maximum length of a string, characters. Without it only the length of the body limits a string. */
  maxLength?: number;
}

const PARAMETER_ERRORS: FieldErrors = {
  notObject: () => invalidRequest('The request body must be an object.'),
  missing: (name) => invalidRequest(`Missing required parameter: ${name}`),
  invalid: (name) => invalidRequest(`Invalid parameter: ${name}`),
};

function invalidRequest(description: string): AuthError {
  return new AuthError(400, 'invalid_request', description);
}

/** Returns the parsed body; undefined for a request without one. */
export function bodyOf(ctx: Context): unknown {
  return (ctx.request as { body?: unknown }).body;
}

/** As {@link bodyOf}, without the text of an uploaded file. */
export function bodyWithoutFile(ctx: Context): unknown {
  const { fileField } = ctx.request as { fileField?: string };
  const body = bodyOf(ctx);
  if (fileField === undefined) return body;
  return Object.fromEntries(Object.entries(body as Fields).filter(([name]) => name !== fileField));
}

/**
 * Returns a JSON or form body without its null members: SDKs send null for what was left out.
 * @throws AuthError 400 for a body that is not an object.
 */
export function bodyObject(ctx: Context, errors = PARAMETER_ERRORS): Fields {
  const body = bodyOf(ctx) ?? {};
  if (typeof body !== 'object' || Array.isArray(body)) throw errors.notObject();
  if (!Object.values(body).includes(null)) return body as Fields;
  return Object.fromEntries(Object.entries(body).filter(([, value]) => value !== null));
}

/**
 * Returns the fields of a body as strings.
 * @param names the names to read; other fields may have any value.
 * @throws AuthError 400 `invalid_request` for a body that is not an object, or a field that is an object or a list.
 */
export function bodyFields(ctx: Context, names?: readonly string[]): Record<string, string> {
  const fields: Record<string, string> = {};
  const body = bodyObject(ctx);
  for (const name of Object.keys(body)) {
    const value = body[name];
    if (value === undefined || names?.includes(name) === false) continue;
    // RFC 6749 §3.2: parameters must not be included more than once.
    if (typeof value === 'object') throw PARAMETER_ERRORS.invalid(name, value);
    fields[name] = String(value);
  }
  return fields;
}

/** Returns the string fields of a body; other fields are left out. */
export function bodyTexts(ctx: Context): Record<string, string> {
  const body = bodyOf(ctx);
  return typeof body === 'object' && body !== null && !Array.isArray(body) ? textsOf(body as Fields) : {};
}

/** Returns the named string fields of a posted form; a missing field is an empty string. */
export function formFields<const N extends string>(ctx: Context, ...names: N[]): Record<N, string> {
  const texts = bodyTexts(ctx);
  return Object.fromEntries(names.map((name) => [name, texts[name] ?? ''])) as Record<N, string>;
}

/** Returns the fields that are strings. */
export function textsOf(fields: Fields): Record<string, string> {
  return Object.fromEntries(
    Object.entries(fields).filter((field): field is [string, string] => typeof field[1] === 'string'),
  );
}

/** Returns a string field; undefined when it is missing, null or empty. @throws AuthError 400 for another value. */
export function textField(fields: Fields, name: string, errors = PARAMETER_ERRORS): string | undefined {
  const value = fields[name] ?? '';
  if (value === '') return undefined;
  const { maxLength = Number.POSITIVE_INFINITY } = errors;
  if (typeof value !== 'string' || value.length > maxLength) throw errors.invalid(name, value);
  return value;
}

/** Returns a required string field. @throws AuthError 400 when it is missing or not a string. */
export function requiredField(fields: Fields, name: string, errors = PARAMETER_ERRORS): string {
  const value = textField(fields, name, errors);
  if (value === undefined) throw errors.missing(name);
  return value;
}
