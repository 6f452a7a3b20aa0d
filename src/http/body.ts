// Reads request bodies: small, uncompressed forms and JSON in UTF-8. Limits nesting and refuses malformed Unicode for
// all handlers.
import { parse as parseForm } from 'node:querystring';
import { bodyParser } from '@koa/bodyparser';
import type { Context, Middleware } from 'koa';
import { bodyOf } from './body-fields.ts';
import { AuthError } from './errors.ts';
import { type MultipartRules, readFormWithFile } from './multipart.ts';

const FORM = 'application/x-www-form-urlencoded';
/** The methods whose bodies are read. Some DELETE requests name in the body what to delete. */
const WITH_BODY = ['POST', 'PUT', 'PATCH', 'DELETE'];
const JSON_TYPES = ['application/json', 'application/*+json'];

/** The maximum depth of nesting in JSON; `user_metadata` needs a few levels. */
const MAX_DEPTH = 32;

/** The maximum number of fields in a form. */
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
