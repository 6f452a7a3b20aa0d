// Reads request bodies: small, uncompressed forms and JSON in UTF-8. Bounds nesting and refuses malformed Unicode here,
// for all handlers.
import type { IncomingMessage } from 'node:http';
import { parse as parseForm } from 'node:querystring';
import type { Context, Middleware } from 'koa';
import { AuthError } from './errors.ts';

const FORM = 'application/x-www-form-urlencoded';
/** The methods whose bodies are read; a DELETE may name what is to go. */
const WITH_BODY = ['POST', 'PUT', 'PATCH', 'DELETE'];
const JSON_TYPE = /^application\/(?:json|[^/]*\+json)$/;

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
  return async (ctx, next) => {
    if (WITH_BODY.includes(ctx.method)) {
      refuseCoded(ctx);
      const type = mediaType(ctx);
      const isRead = type === FORM || JSON_TYPE.test(type) || texts.includes(type);
      const text = isRead ? await textOf(ctx.req, largest) : '';
      const body = isNullNone && text.trim() === 'null' ? {} : parse(text, type, texts);
      Object.assign(ctx.request, { body });
    }
    return next();
  };
}

/** In small letters and without parameters. */
const mediaType = (ctx: Context) => (ctx.get('Content-Type').split(';', 1)[0] ?? '').trim().toLowerCase();

/** Reads a body; what is no UTF-8 in it becomes U+FFFD. @throws AuthError 413, and 400 where its sender gives up. */
function textOf(request: IncomingMessage, largest: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const parts: Buffer[] = [];
    let length = 0;
    let isOver = false;
    const give = () => {
      isOver = true;
      const text = Buffer.concat(parts).toString();
      // A byte order mark.
      resolve(text.startsWith('\ufeff') ? text.slice(1) : text);
    };
    const fail = (error: () => AuthError) => {
      if (isOver) return;
      isOver = true;
      request.off('data', take).pause();
      reject(error());
    };
    const take = (part: Buffer) => {
      length += part.length;
      if (length > largest) return fail(tooLarge);
      parts.push(part);
    };
    const giveUp = () => fail(unreadable);
    if (Number(request.headers['content-length'] ?? 0) > largest) return fail(tooLarge);
    if (request.destroyed) return giveUp();
    request.on('data', take).once('end', give).once('error', giveUp).once('close', giveUp);
  });
}

function refuseCoded(ctx: Context): void {
  const encoding = ctx.get('Content-Encoding').trim().toLowerCase();
  if (encoding === '' || encoding === 'identity') return;
  ctx.set('Accept-Encoding', 'identity');
  throw new AuthError(415, 'invalid_request', 'The content coding of the request is not supported.');
}

function parse(text: string, type: string, texts: readonly string[]): unknown {
  if (text === '') return {};
  if (texts.includes(type)) return text;
  if (type === FORM) return fieldsOf(text);
  // Clients that know nothing but JSON send a text as a JSON string.
  const parsed = texts.length > 0 ? parseJson(text) : undefined;
  return typeof parsed === 'string' ? parsed : checkedJson(text);
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
