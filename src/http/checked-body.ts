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
  const invalid = (errors === 'page' ? undefined : errors.invalid) ?? parameterFault;
  const body = bodyOf(ctx) ?? {};
  if (typeof body !== 'object' || Array.isArray(body)) {
    throw invalid([{ field: undefined, isMissing: false, message: 'must be an object' }]);
  }
  const fields = Object.fromEntries(Object.entries(body).filter(([, value]) => value !== null));
  const read = schema.safeParse(fields);
  if (read.success) return read.data;
  throw invalid(
    read.error.issues.map(({ path: [field], message }) => ({
      field: String(field),
      isMissing: [undefined, ''].includes(fields[String(field)]),
      message,
    })),
  );
}

/** The first fault, as the endpoints that follow RFC 6749 say it. */
function parameterFault([fault]: readonly BodyFault[]): AuthError {
  const what =
    fault?.field === undefined
      ? 'The request body must be an object.'
      : `${fault.isMissing ? 'Missing required parameter' : 'Invalid parameter'}: ${fault.field}`;
  return new AuthError(400, 'invalid_request', what);
}
