// What a logout request says, and what is wrong with it.
import type { Context } from 'koa';
import { bodyFields } from '../http/body-fields.ts';
import { AuthError } from '../http/errors.ts';

/** A refusal, shown as a page: the browser is sent nowhere (spec "Logout"). */
export function badRequest(description: string): AuthError {
  return new AuthError(400, 'invalid_request', description);
}

/**
 * The parameters of those names; one without a value counts as not given, unless it is a flag.
 * @throws AuthError 400 when one is given twice: which of them was meant is anyone's guess.
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

/** As {@link queryFields}, of a posted form. @throws AuthError 400 likewise, and for a body that is no form. */
export function postedFields(ctx: Context, names: readonly string[]): Partial<Record<string, string>> {
  if (ctx.is('application/x-www-form-urlencoded') === false) {
    throw badRequest('The body must be application/x-www-form-urlencoded.');
  }
  return bodyFields(ctx, names);
}

/** An address that is in no allow-list, in the hosted service's words: its SDKs' users look for them. */
export function notAllowed(parameter: string, address: string): AuthError {
  return badRequest(
    `The "${parameter}" querystring parameter "${address.slice(0, LONGEST)}" is not defined as a valid URL in "Allowed Logout URLs".`,
  );
}

export function unknownClient(clientId: string): AuthError {
  return badRequest(`Unknown client: ${clientId.slice(0, LONGEST)}`);
}

/** What a request says is shown again no longer than this. */
const LONGEST = 255;
