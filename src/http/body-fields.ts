// What a request's body says: every field that a handler takes is read here, so that none meets one of another type.
import type { Context } from 'koa';
import { AuthError } from './errors.ts';

/** Fields as they came: of a JSON body anything, of a form or a query texts and lists of them. */
export type Fields = Readonly<Record<string, unknown>>;

/** How an endpoint says what is wrong with a body. */
export interface FieldErrors {
  noObject(): AuthError;
  missing(name: string): AuthError;
  /** For a value that is no text, or too long a one. */
  invalid(name: string, value: unknown): AuthError;
  /** In characters; where there is none, a text is as long as a body may be. */
  longest?: number;
}

const PARAMETER_ERRORS: FieldErrors = {
  noObject: () => invalidRequest('The request body must be an object.'),
  missing: (name) => invalidRequest(`Missing required parameter: ${name}`),
  invalid: (name) => invalidRequest(`Invalid parameter: ${name}`),
};

function invalidRequest(description: string): AuthError {
  return new AuthError(400, 'invalid_request', description);
}

/** The parsed body; undefined for a request without one. */
export function bodyOf(ctx: Context): unknown {
  return (ctx.request as { body?: unknown }).body;
}

/**
 * A body, JSON or form, without what is null: SDKs send null for what was left out.
 * @throws AuthError 400 for a body that is no object.
 */
export function bodyObject(ctx: Context, errors = PARAMETER_ERRORS): Fields {
  const body = bodyOf(ctx) ?? {};
  if (typeof body !== 'object' || Array.isArray(body)) throw errors.noObject();
  if (!Object.values(body).includes(null)) return body as Fields;
  return Object.fromEntries(Object.entries(body).filter(([, value]) => value !== null));
}

/**
 * The fields of a body, as strings.
 * @param only the names that matter; others may be anything.
 * @throws AuthError 400 `invalid_request` for a body that is no object, or a field that is no plain value.
 */
export function bodyFields(ctx: Context, only?: readonly string[]): Record<string, string> {
  const fields: Record<string, string> = {};
  const body = bodyObject(ctx);
  for (const name of Object.keys(body)) {
    const value = body[name];
    if (value === undefined || only?.includes(name) === false) continue;
    // RFC 6749 §3.2: parameters must not be included more than once.
    if (typeof value === 'object') throw PARAMETER_ERRORS.invalid(name, value);
    fields[name] = String(value);
  }
  return fields;
}

/** The text fields of a body; what is something else is left out. */
export function bodyTexts(ctx: Context): Record<string, string> {
  const body = bodyOf(ctx);
  return typeof body === 'object' && body !== null && !Array.isArray(body) ? textsOf(body as Fields) : {};
}

/** Those text fields of a posted form; what is missing is empty. */
export function formFields<const N extends string>(ctx: Context, ...names: N[]): Record<N, string> {
  const texts = bodyTexts(ctx);
  return Object.fromEntries(names.map((name) => [name, texts[name] ?? ''])) as Record<N, string>;
}

/** The fields that are texts. */
export function textsOf(fields: Fields): Record<string, string> {
  return Object.fromEntries(
    Object.entries(fields).filter((field): field is [string, string] => typeof field[1] === 'string'),
  );
}

/** A text field; undefined where it is missing, null or empty. @throws AuthError 400 for anything else. */
export function textField(fields: Fields, name: string, errors = PARAMETER_ERRORS): string | undefined {
  const value = fields[name] ?? '';
  if (value === '') return undefined;
  const { longest = Number.POSITIVE_INFINITY } = errors;
  if (typeof value !== 'string' || value.length > longest) throw errors.invalid(name, value);
  return value;
}

/** A text field that the endpoint cannot do without. @throws AuthError 400 where it is missing or no text. */
export function requiredField(fields: Fields, name: string, errors = PARAMETER_ERRORS): string {
  const value = textField(fields, name, errors);
  if (value === undefined) throw errors.missing(name);
  return value;
}
