// Bodies of requests: small forms and JSON in UTF-8, not compressed. What a body may be is decided here alone, so that no
// handler meets one that nests without end or holds text that is no Unicode.
import type { IncomingMessage } from 'node:http';
import { parse as parseForm } from 'node:querystring';
import type { Middleware } from 'koa';
import { AuthError } from './errors.ts';

/** What JSON may nest at most: user_metadata and the like nest a little. */
const DEEPEST = 32;

/** The most fields of a form. */
const MOST_FIELDS = 500;

/** How a form says an object's member: `user_metadata[plan]`. */
const MEMBER = /^([^[\]]+)\[([^[\]]+)\]$/;

/**
 * Leaves a POST's body, parsed, at `ctx.request.body`: an object or an array for JSON; for a form an object of strings,
 * of lists of strings where a name is repeated, and of objects of these for `name[key]`; an empty object for other types
 * and for no body at all.
 * @param largest in bytes.
 * @throws AuthError 400 for what cannot be read, 413 for what is too long, 415 for a compressed body (RFC 9110 §15.5.16).
 */
export function readBody(largest: number): Middleware {
  return async (ctx, next) => {
    if (ctx.method === 'POST') Object.assign(ctx.request, { body: await bodyOf(ctx, largest) });
    return next();
  };
}

async function bodyOf(ctx: Parameters<Middleware>[0], largest: number): Promise<unknown> {
  const encoding = ctx.get('Content-Encoding').trim().toLowerCase();
  if (encoding !== '' && encoding !== 'identity') {
    ctx.set('Accept-Encoding', 'identity');
    throw new AuthError(415, 'invalid_request', 'The content coding of the request is not supported.');
  }
  const isForm = ctx.is('application/x-www-form-urlencoded') !== false;
  const isJson = ctx.is('application/json', 'application/*+json') !== false;
  const text = await readText(ctx.req, largest);
  if (text === '') return {};
  if (isForm) return fieldsOf(text);
  return isJson ? checkedJson(text) : {};
}

function readText(request: IncomingMessage, largest: number): Promise<string> {
  if (Number(request.headers['content-length'] ?? 0) > largest) return Promise.reject(tooLarge());
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let length = 0;
    const end = (settle: () => void) => {
      request.off('data', take).off('end', done).off('error', broken).off('close', broken);
      settle();
    };
    const take = (chunk: Buffer) => {
      length += chunk.length;
      if (length > largest) end(() => reject(tooLarge()));
      else chunks.push(chunk);
    };
    const done = () => end(() => resolve(new TextDecoder().decode(Buffer.concat(chunks))));
    const broken = () => end(() => reject(unreadable()));
    request.on('data', take).on('end', done).on('error', broken).on('close', broken);
  });
}

function fieldsOf(form: string): Record<string, unknown> {
  // Counted before they are made: `maxKeys` would drop the rest in silence.
  if (form.split('&', MOST_FIELDS + 1).length > MOST_FIELDS) throw unreadable();
  const fields: Record<string, unknown> = {};
  const members: Record<string, Record<string, unknown>> = {};
  for (const [name, value] of Object.entries(parseForm(form, '&', '=', { maxKeys: 0 }))) {
    const [, object, key] = MEMBER.exec(name) ?? [];
    if ([name, object, key].includes('__proto__')) throw unreadable();
    if (object === undefined || key === undefined) fields[name] = value;
    else members[object] = { ...members[object], [key]: value };
  }
  if (Object.keys(members).some((name) => Object.hasOwn(fields, name))) throw unreadable();
  return { ...fields, ...members };
}

function checkedJson(text: string): object {
  const value = parseJson(text);
  if (typeof value !== 'object' || value === null) throw unreadable();
  // A list of what is left to look at, because a recursion would end at a nesting that somebody else chooses.
  const left: { value: unknown; depth: number }[] = [{ value, depth: 1 }];
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    if (typeof next.value === 'string' && !next.value.isWellFormed()) throw unreadable();
    if (typeof next.value !== 'object' || next.value === null) continue;
    if (next.depth > DEEPEST) throw unreadable();
    for (const [name, member] of Object.entries(next.value)) {
      // As a member it would be one; copied into another object it changes what that object is.
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
    // What JSON.parse says of it quotes it, and with it a password.
    throw unreadable();
  }
}

function unreadable(): AuthError {
  return new AuthError(400, 'invalid_request', 'The request could not be read.');
}

function tooLarge(): AuthError {
  return new AuthError(413, 'invalid_request', 'The request body is too large.');
}
