// Reads the parameters of logout requests, and makes the errors that refuse them.
import type { Context } from 'koa';
import { AuthError } from '../../http/errors.ts';
import { bodyFields } from '../../http/server/body.ts';

/** Returns a refusal, which is shown as a page: the browser is sent nowhere (docs/reference/wire/logout.md). */
export function badRequest(description: string): AuthError {
  return new AuthError(400, 'invalid_request', description);
}

/** @throws AuthError 400 when one is given twice. */
export function queryFields(ctx: Context, names: readonly string[]): Partial<Record<string, string>> {
  const fields: Partial<Record<string, string>> = {};
  for (const name of names) {
    const value = ctx.query[name];
    if (Array.isArray(value)) throw badRequest(`Invalid parameter: ${name}`);
    if (value !== undefined) fields[name] = value;
  }
  return fields;
}

/**
 * Returns the parameters of these names from a posted form.
 * @throws AuthError 400 as {@link queryFields}, and for other content types.
 */
export function postedFields(ctx: Context, names: readonly string[]): Partial<Record<string, string>> {
  if (ctx.is('application/x-www-form-urlencoded') === false) {
    throw badRequest('The body must be application/x-www-form-urlencoded.');
  }
  return bodyFields(ctx, names);
}

/** Returns the error for a URL that is on no allow-list; the text is the hosted service's. */
export function notAllowed(parameter: string, address: string): AuthError {
  return badRequest(
    `The "${parameter}" querystring parameter "${address.slice(0, MAX_REPEATED_LENGTH)}" is not defined as a valid URL in "Allowed Logout URLs".`,
  );
}

export function unknownClient(clientId: string): AuthError {
  return badRequest(`Unknown client: ${clientId.slice(0, MAX_REPEATED_LENGTH)}`);
}

/** The most characters of a parameter that an error repeats. */
const MAX_REPEATED_LENGTH = 255;
