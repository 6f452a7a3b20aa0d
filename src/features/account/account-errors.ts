// Errors of the My Account API: problem details (RFC 9457), as its SDKs read them.
import { STATUS_CODES } from 'node:http';
import type { Context } from 'koa';
import { z } from 'zod';
import { presentedToken } from '../../engine/binding/proof-of-possession.ts';
import { AuthError, type ErrorShape, isBusy } from '../../http/errors.ts';

/** The prefix of `type`. The error code follows. */
const TYPE = 'urn:gatehouse:error:';

/** The error for a login that is too old, or lacks a second factor (RFC 9470 §3). */
export const STEP_UP = 'insufficient_user_authentication';

/** What a new login has to fulfil. */
interface LoginRequirements {
  /** The maximum age of the login, seconds. */
  max_age?: number;
  acr_values?: string;
}

/** @param requirements the parameters that the application sends to `/authorize`. */
export function stepUp(requirements: LoginRequirements, description: string): AuthError {
  return new AuthError(401, STEP_UP, description, { extra: { ...requirements } });
}

export function invalidField(field: string, detail: string): AuthError {
  return invalidBody([{ detail, field, pointer: `/${field}`, source: 'body' }]);
}

export function invalidQuery(field: string, detail: string): AuthError {
  return new AuthError(400, 'invalid_request', 'The query is not valid.', {
    extra: { validation_errors: [{ detail, field, source: 'query' }] },
  });
}

function invalidBody(validation_errors: object[]): AuthError {
  return new AuthError(400, 'invalid_request', 'The request body is not valid.', {
    extra: { validation_errors },
  });
}

/** Writes an error as problem details. */
export const problemShape: ErrorShape = (ctx: Context, error: AuthError): void => {
  const { status, error: code, error_description: detail, extra } = error;
  ctx.status = status;
  ctx.set('Cache-Control', 'no-store');
  if (isBusy(error)) ctx.set('Retry-After', '1');
  // A failed proof of possession has set the header already.
  if (CHALLENGE_ERRORS.has(code) && !ctx.res.hasHeader('WWW-Authenticate'))
    ctx.set('WWW-Authenticate', challenge(ctx, error));
  ctx.body = { type: `${TYPE}${code}`, status, title: STATUS_CODES[status] ?? 'Error', detail, ...extra };
  ctx.type = 'application/problem+json';
};

/** Errors that are also sent in `WWW-Authenticate` (RFC 6750 §3.1, RFC 9470 §3). */
const CHALLENGE_ERRORS: ReadonlySet<string> = new Set(['invalid_token', 'insufficient_scope', STEP_UP]);

function challenge(ctx: Context, { error, error_description, extra }: AuthError): string {
  const scheme = presentedToken(ctx)?.scheme === 'dpop' ? 'DPoP' : 'Bearer';
  const parameters = { error, error_description, ...extra };
  return `${scheme} ${Object.entries(parameters)
    .map(([name, value]) => `${name}="${String(value)}"`)
    .join(', ')}`;
}

problemShape.schema = {
  name: 'Problem',
  body: z.looseObject({
    type: z.string().describe(`\`${TYPE}\` and a code for programs.`),
    status: z.number(),
    title: z.string(),
    detail: z.string().describe('A sentence for developers.'),
    validation_errors: z
      .array(z.looseObject({ detail: z.string(), field: z.string().optional() }))
      .optional(),
  }),
};

problemShape.invalid = (faults) =>
  invalidBody(
    faults.map(({ field, message }) => ({
      detail: message,
      ...(field === undefined ? {} : { field, pointer: `/${field.replaceAll('.', '/')}` }),
      source: 'body',
    })),
  );
