// Checks a request body against the schema that its route declares.
import type { Context } from 'koa';
import type { z } from 'zod';
import { bodyOf } from './body-fields.ts';
import { AuthError, type BodyFault, type ErrorShape } from './errors.ts';

/**
 * Parses a JSON or form body by a schema, without its null members: SDKs send null for what was left out.
 * @param errors the error shape of the route, which words the error.
 * @throws AuthError when the body does not match the schema.
 */
export function checkBody(ctx: Context, schema: z.ZodType, errors: ErrorShape | 'page'): unknown {
  const body = bodyOf(ctx) ?? {};
  const isObject = typeof body === 'object' && !Array.isArray(body);
  const fields = Object.fromEntries(
    Object.entries(isObject ? body : {}).filter(([, value]) => value !== null),
  );
  const parsed = schema.safeParse(fields);
  if (isObject && parsed.success) return parsed.data;
  const faults = (parsed.error?.issues ?? []).map(({ path: [field], message }): BodyFault => {
    return { field: String(field), value: fields[String(field)], message };
  });
  const notObject = { field: undefined, value: body, message: 'must be an object' };
  const invalid = (errors === 'page' ? undefined : errors.invalid) ?? parameterFault;
  throw invalid(isObject ? faults : [notObject, ...faults]);
}

/** Reports the first fault, for endpoints that follow RFC 6749. */
function parameterFault([fault]: readonly BodyFault[]): AuthError {
  const { field, value = '' } = fault ?? {};
  const what = value === '' ? 'Missing required parameter' : 'Invalid parameter';
  const description = field === undefined ? 'The request body must be an object.' : `${what}: ${field}`;
  return new AuthError(400, 'invalid_request', description);
}
