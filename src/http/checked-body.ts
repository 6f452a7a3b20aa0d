// Bodies as their routes declare them: the one place where a declared schema meets a request.
import type { Context } from 'koa';
import type { z } from 'zod';
import { bodyOf } from './body-fields.ts';
import { AuthError, type BodyFault, type ErrorShape } from './errors.ts';

/**
 * What a schema makes of a request's body, JSON or form, without what is null: SDKs send null for what was left out.
 * @throws AuthError in the words of the route's error shape.
 */
export function checkBody(ctx: Context, schema: z.ZodType, errors: ErrorShape | 'page'): unknown {
  const body = bodyOf(ctx) ?? {};
  const isObject = typeof body === 'object' && !Array.isArray(body);
  const fields = Object.fromEntries(
    Object.entries(isObject ? body : {}).filter(([, value]) => value !== null),
  );
  const read = schema.safeParse(fields);
  if (isObject && read.success) return read.data;
  const faults = (read.error?.issues ?? []).map(({ path: [field], message }): BodyFault => {
    return { field: String(field), value: fields[String(field)], message };
  });
  const noObject = { field: undefined, value: body, message: 'must be an object' };
  const invalid = (errors === 'page' ? undefined : errors.invalid) ?? parameterFault;
  throw invalid(isObject ? faults : [noObject, ...faults]);
}

/** The first fault, as the endpoints that follow RFC 6749 say it. */
function parameterFault([fault]: readonly BodyFault[]): AuthError {
  const { field, value = '' } = fault ?? {};
  const what = value === '' ? 'Missing required parameter' : 'Invalid parameter';
  const description = field === undefined ? 'The request body must be an object.' : `${what}: ${field}`;
  return new AuthError(400, 'invalid_request', description);
}
