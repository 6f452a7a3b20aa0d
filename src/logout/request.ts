// The parameters of logout requests, and the errors they are refused with.
import type { Context } from 'koa';
import { bodyFields } from '../http/body-fields.ts';
import { AuthError } from '../http/errors.ts';

/** A refusal, shown as a page: the browser is sent nowhere (docs/wire/logout.md). */
export function badRequest(description: string): AuthError {
  return new AuthError(400, 'invalid_request', description);
}

/**
 * The query parameters of those names.
 * @throws AuthError 400 when one is given twice.
 */
export function queryFields(ctx: Context, names: readonly string[]): Partial<Record<string, string>> {
  const fields: Partial<Record<string, string>> = {};
  for (const name of names) {
    const value = ctx.query[name];
    if (Array.isArray(value)) throw badRequest(`Invalid parameter: ${name}`);
    if (value !== undefined) fields[name] = value;
  }
  return fields;
}

/** As {@link queryFields}, of a posted form. @throws AuthError 400 likewise, and for other content types. */
export function postedFields(ctx: Context, names: readonly string[]): Partial<Record<string, string>> {
  if (ctx.is('application/x-www-form-urlencoded') === false) {
    throw badRequest('The body must be application/x-www-form-urlencoded.');
  }
  return bodyFields(ctx, names);
}

/** An address that is on no allow-list; the text is the hosted service's. */
export function notAllowed(parameter: string, address: string): AuthError {
  return badRequest(
    `The "${parameter}" querystring parameter "${address.slice(0, LONGEST)}" is not defined as a valid URL in "Allowed Logout URLs".`,
  );
}

/** The error for a `client_id` that no application has. */
export function unknownClient(clientId: string): AuthError {
  return badRequest(`Unknown client: ${clientId.slice(0, LONGEST)}`);
}

/** Characters of a parameter repeated in an error. */
const LONGEST = 255;
