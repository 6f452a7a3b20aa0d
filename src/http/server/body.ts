// Reads request bodies: small, uncompressed forms and JSON in UTF-8. Limits nesting and refuses malformed Unicode for
// all handlers.
import { parse as parseForm } from 'node:querystring';
import { bodyParser } from '@koa/bodyparser';
import type { Context, Middleware } from 'koa';
import { AuthError } from '../errors.ts';
import { type MultipartRules, readFormWithFile } from './multipart.ts';

const FORM = 'application/x-www-form-urlencoded';
/** The methods whose bodies are read. Some DELETE requests name in the body what to delete. */
const WITH_BODY = ['POST', 'PUT', 'PATCH', 'DELETE'];
const JSON_TYPES = ['application/json', 'application/*+json'];

/** The maximum depth of nesting in JSON; `user_metadata` needs a few levels. */
const MAX_DEPTH = 32;

const MAX_FIELDS = 500;

/** The name of a form field that is a member of an object: `user_metadata[plan]`. */
const MEMBER = /^([^[\]]+)\[([^[\]]+)\]$/;

/** The bodies that a route accepts, where they differ from the default. */
export interface BodyRules {
  /** The maximum length, bytes. */
  maxBytes?: number;
  /**
   * Whether only some of the bodies that are longer than usual are in memory at once ({@link limitLongBodies}). Not for
   * routes that strangers can send them to: they would take the places of others.
   */
  isShared?: boolean;
  /** Further media types. Their bodies are passed on as strings, unparsed. */
  textTypes?: readonly string[];
  /** Whether the JSON `null` counts as no body: published clients (go-auth0) send it to calls that take none. */
  ignoresNull?: boolean;
  /** For a form with a file (multipart), which is read in addition to the other types. */
  file?: MultipartRules;
}

/** Returns the reader of bodies for a route's rules. It throws as {@link readBody} does, also for faulty files. */
export function bodyReader({
  maxBytes,
  textTypes,
  ignoresNull,
  file,
}: BodyRules & Required<Pick<BodyRules, 'maxBytes'>>): Middleware {
  const read = readBody(maxBytes, textTypes, ignoresNull);
  return file === undefined ? read : readFormWithFile(file, read);
}

/**
 * Parses a body and leaves it at `ctx.request.body`. JSON gives an object or an array. A form gives an object of
 * strings, of lists of strings where a name is repeated, and of objects of these for `name[key]`. Other types and
 * missing bodies give an empty object.
 * @param maxBytes the maximum length, bytes.
 * @param textTypes further media types, whose bodies are passed on as strings.
 * @param ignoresNull whether the JSON `null` counts as no body.
 * @throws AuthError 400 for a malformed body, 413 for one that is too long, 415 for a compressed one (RFC 9110
 * §15.5.16).
 */
export function readBody(
  maxBytes: number,
  textTypes: readonly string[] = [],
  ignoresNull = false,
): Middleware {
  const read = textReader(maxBytes, textTypes);
  return async (ctx, next) => {
    if (WITH_BODY.includes(ctx.method)) {
      refuseEncoded(ctx);
      await read(ctx, async () => undefined);
      const body = ignoresNull && String(bodyOf(ctx)).trim() === 'null' ? {} : parse(ctx, textTypes);
      Object.assign(ctx.request, { body });
    }
    return next();
  };
}

/**
 * Reads the text with @koa/bodyparser, which checks length and encoding. Parsing is done in this file: the package's
 * parsers limit neither nesting nor member names.
 */
function textReader(maxBytes: number, textTypes: readonly string[]): Middleware {
  return bodyParser({
    parsedMethods: WITH_BODY,
    enableTypes: ['text'],
    extendTypes: { text: [FORM, ...JSON_TYPES, ...textTypes] },
    textLimit: maxBytes,
    encoding: 'utf-8',
    onError: (fault) => {
      throw 'status' in fault && fault.status === 413 ? tooLarge() : unreadable();
    },
  });
}

function refuseEncoded(ctx: Context): void {
  const encoding = ctx.get('Content-Encoding').trim().toLowerCase();
  if (encoding === '' || encoding === 'identity') return;
  ctx.set('Accept-Encoding', 'identity');
  throw new AuthError(415, 'invalid_request', 'The content coding of the request is not supported.');
}

function parse(ctx: Context, textTypes: readonly string[]): unknown {
  const body = bodyOf(ctx);
  // It is undefined when the client closed the connection meanwhile.
  if (body === undefined) throw unreadable();
  if (typeof body !== 'string' || body === '') return {};
  if (textTypes.length > 0 && ctx.is([...textTypes]) !== false) return body;
  // Clients that can only send JSON send a text as a JSON string.
  const text = textTypes.length > 0 && ctx.is(FORM) === false ? parseJson(body) : undefined;
  if (typeof text === 'string') return text;
  return ctx.is(FORM) === false ? checkedJson(body) : fieldsOf(body);
}

function fieldsOf(form: string): Record<string, unknown> {
  // The parser's own `maxKeys` would drop further fields silently.
  if (form.length >= MAX_FIELDS && form.split('&', MAX_FIELDS + 1).length > MAX_FIELDS) throw unreadable();
  const parsed = parseForm(form, '&', '=', { maxKeys: 0 });
  const fields: Record<string, unknown> = {};
  const members: Record<string, Record<string, unknown>> = {};
  for (const name of Object.keys(parsed)) {
    const value = parsed[name];
    const [, object, key] = (name.endsWith(']') ? MEMBER.exec(name) : null) ?? [];
    if (name === '__proto__' || object === '__proto__' || key === '__proto__') throw unreadable();
    if (object === undefined || key === undefined) fields[name] = value;
    else members[object] = { ...members[object], [key]: value };
  }
  if (Object.keys(members).some((name) => Object.hasOwn(fields, name))) throw unreadable();
  return { ...fields, ...members };
}

/**
 * Parses JSON, limiting its depth and refusing dangerous member names.
 * @throws AuthError 400 for anything but an object or array within these limits.
 */
export function checkedJson(text: string): object {
  const value = parseJson(text);
  if (typeof value !== 'object' || value === null) throw unreadable();
  // A loop instead of recursion: the sender chooses the depth.
  const pending: { value: unknown; depth: number }[] = [{ value, depth: 1 }];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    if (typeof next.value === 'string' && !next.value.isWellFormed()) throw unreadable();
    if (typeof next.value !== 'object' || next.value === null) continue;
    if (next.depth > MAX_DEPTH) throw unreadable();
    for (const [name, member] of Object.entries(next.value)) {
      // If the object were copied into another one, `__proto__` would change its prototype.
      if (name === '__proto__' || !name.isWellFormed()) throw unreadable();
      pending.push({ value: member, depth: next.depth + 1 });
    }
  }
  return value;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The message of JSON.parse would quote the body, which may hold a password.
    throw unreadable();
  }
}

function unreadable(): AuthError {
  return new AuthError(400, 'invalid_request', 'The request could not be read.');
}

function tooLarge(): AuthError {
  return new AuthError(413, 'invalid_request', 'The request body is too large.');
}

// Reads the fields of a request body. Handlers read every field here, so that none gets a value of an unexpected
// type.

/** Unchecked fields. JSON can hold any value; a form or a query holds strings and lists of strings. */
export type Fields = Readonly<Record<string, unknown>>;

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

/** @throws AuthError 400 when it is missing or not a string. */
export function requiredField(fields: Fields, name: string, errors = PARAMETER_ERRORS): string {
  const value = textField(fields, name, errors);
  if (value === undefined) throw errors.missing(name);
  return value;
}

// Adds parameters to addresses of applications.

// docs/understand/decisions/requests.md#the-query-of-a-callback-is-kept-to-the-letter
/**
 * Returns an address with parameters in its query, in place of those with the same names. The rest of the query keeps its
 * spelling (`%7E`, `flag` without a value), because an application may have signed it.
 */
export function withParameters(address: string, parameters: Readonly<Record<string, string>>): string {
  const url = new URL(address);
  const given = url.search === '' ? [] : url.search.slice(1).split('&');
  const kept = given.filter((part) => {
    const [name] = new URLSearchParams(part).keys();
    return name === undefined || !Object.hasOwn(parameters, name);
  });
  url.search = [...kept, String(new URLSearchParams(parameters))].join('&');
  return url.href;
}
