// Reads request bodies: small, uncompressed forms and JSON in UTF-8. Bounds nesting and refuses malformed Unicode here,
// for all handlers.
import { parse as parseForm } from 'node:querystring';
import { bodyParser } from '@koa/bodyparser';
import type { Context, Middleware } from 'koa';
import { bodyOf } from './body-fields.ts';
import { AuthError } from './errors.ts';

const FORM = 'application/x-www-form-urlencoded';
/** The methods whose bodies are read; a DELETE may name what is to go. */
const WITH_BODY = ['POST', 'PUT', 'PATCH', 'DELETE'];
const JSON_TYPES = ['application/json', 'application/*+json'];

/** Levels of nesting in JSON; user_metadata nests a little. */
const DEEPEST = 32;

/** Fields of a form at most. */
const MOST_FIELDS = 500;

/** A form's field for an object's member: `user_metadata[plan]`. */
const MEMBER = /^([^[\]]+)\[([^[\]]+)\]$/;

/** Which bodies a route takes, where those of other requests are not enough. */
export interface BodyRules {
  /** Bytes. */
  largest?: number;
  /** Further media types, whose bodies are left as the text that they are. */
  texts?: readonly string[];
  /** Whether `null` is no body: published clients (go-auth0) send it where a call takes nothing. */
  isNullNone?: boolean;
}

/**
 * Leaves a body, parsed, at `ctx.request.body`: an object or an array for JSON; for a form an object of strings,
 * of lists of strings where a name is repeated, and of objects of these for `name[key]`; an empty object for other types
 * and for no body at all.
 * @param largest in bytes.
 * @param texts further media types, whose bodies are left as they are.
 * @param isNullNone whether the JSON `null` is no body at all.
 * @throws AuthError 400 for what cannot be read, 413 for what is too long, 415 for a compressed body (RFC 9110 §15.5.16).
 */
export function readBody(largest: number, texts: readonly string[] = [], isNullNone = false): Middleware {
  const read = textReader(largest, texts);
  return async (ctx, next) => {
    if (WITH_BODY.includes(ctx.method)) {
      refuseCoded(ctx);
      await read(ctx, async () => undefined);
      const body = isNullNone && String(bodyOf(ctx)).trim() === 'null' ? {} : parse(ctx, texts);
      Object.assign(ctx.request, { body });
    }
    return next();
  };
}

/**
 * Reads the text with @koa/bodyparser, which checks length and encoding. It is parsed here: the package's parsers limit
 * neither nesting nor member names.
 */
function textReader(largest: number, texts: readonly string[]): Middleware {
  return bodyParser({
    parsedMethods: WITH_BODY,
    enableTypes: ['text'],
    extendTypes: { text: [FORM, ...JSON_TYPES, ...texts] },
    textLimit: largest,
    encoding: 'utf-8',
    onError: (fault) => {
      throw 'status' in fault && fault.status === 413 ? tooLarge() : unreadable();
    },
  });
}

function refuseCoded(ctx: Context): void {
  const encoding = ctx.get('Content-Encoding').trim().toLowerCase();
  if (encoding === '' || encoding === 'identity') return;
  ctx.set('Accept-Encoding', 'identity');
  throw new AuthError(415, 'invalid_request', 'The content coding of the request is not supported.');
}

function parse(ctx: Context, texts: readonly string[]): unknown {
  const body = bodyOf(ctx);
  // Undefined when the client gave up meanwhile.
  if (body === undefined) throw unreadable();
  if (typeof body !== 'string' || body === '') return {};
  if (texts.length > 0 && ctx.is([...texts]) !== false) return body;
  // Clients that know nothing but JSON send a text as a JSON string.
  const text = texts.length > 0 && ctx.is(FORM) === false ? parseJson(body) : undefined;
  if (typeof text === 'string') return text;
  return ctx.is(FORM) === false ? checkedJson(body) : fieldsOf(body);
}

function fieldsOf(form: string): Record<string, unknown> {
  // `maxKeys` of the parser would drop further fields silently.
  if (form.length >= MOST_FIELDS && form.split('&', MOST_FIELDS + 1).length > MOST_FIELDS) throw unreadable();
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

/** Reads JSON whose depth and names do no harm. @throws AuthError 400 for what is no object or array of that kind. */
export function checkedJson(text: string): object {
  const value = parseJson(text);
  if (typeof value !== 'object' || value === null) throw unreadable();
  // No recursion: the sender chooses the depth.
  const left: { value: unknown; depth: number }[] = [{ value, depth: 1 }];
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    if (typeof next.value === 'string' && !next.value.isWellFormed()) throw unreadable();
    if (typeof next.value !== 'object' || next.value === null) continue;
    if (next.depth > DEEPEST) throw unreadable();
    for (const [name, member] of Object.entries(next.value)) {
      // Copied into another object, `__proto__` would change its prototype.
      if (name === '__proto__' || !name.isWellFormed()) throw unreadable();
      left.push({ value: member, depth: next.depth + 1 });
    }
  }
  return value;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // JSON.parse's own message would quote the body, which may hold a password.
    throw unreadable();
  }
}

function unreadable(): AuthError {
  return new AuthError(400, 'invalid_request', 'The request could not be read.');
}

function tooLarge(): AuthError {
  return new AuthError(413, 'invalid_request', 'The request body is too large.');
}
