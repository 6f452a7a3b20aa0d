// What a request's body says, as the fields of a form.
import type { Context } from 'koa';
import { AuthError } from './errors.ts';

/**
 * The fields of a parsed JSON or form body, as strings.
 * @param only the names that matter; others may be anything.
 * @throws AuthError 400 `invalid_request` for a body that is no object, or a field that is no plain value.
 */
export function bodyFields(ctx: Context, only?: readonly string[]): Record<string, string> {
  const { body } = ctx.request as { body?: unknown };
  if (body === undefined || body === null) return {};
  if (typeof body !== 'object' || Array.isArray(body)) {
    throw new AuthError(400, 'invalid_request', 'The request body must be an object.');
  }
  const fields: Record<string, string> = {};
  for (const [name, value] of Object.entries(body)) {
    if (value === null || value === undefined || only?.includes(name) === false) continue;
    if (typeof value === 'object') {
      // RFC 6749 §3.2: parameters must not be included more than once.
      throw new AuthError(400, 'invalid_request', `Invalid parameter: ${name}`);
    }
    fields[name] = String(value);
  }
  return fields;
}
