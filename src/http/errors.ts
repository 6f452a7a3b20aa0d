// Defines the one error type and its mapping to HTTP.
import type { Context } from 'koa';
import type { Logger } from 'pino';
import { z } from 'zod';

/**
 * A failure reported to the caller: HTTP status, `error` and `error_description` (RFC 6749 §5.2), and further members of
 * the body. `cause` is only logged.
 */
export class AuthError extends Error {
  readonly status: number;
  readonly error: string;
  readonly error_description: string;
  readonly extra: Readonly<Record<string, unknown>>;
  /** How the log gets its reason, where that is not the line of the request that failed. @see Reported */
  readonly reported: Reported | undefined;

  constructor(
    status: number,
    error: string,
    error_description: string,
    options: { extra?: Record<string, unknown>; cause?: unknown; reported?: Reported } = {},
  ) {
    super(error_description, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'AuthError';
    this.status = status;
    this.error = error;
    this.error_description = error_description;
    this.extra = options.extra ?? {};
    this.reported = options.reported;
  }
}

/**
 * `overload`: the server has more to do than it can, which one line says for many requests. `logged`: whoever made the error
 * has logged its reason.
 */
type Reported = 'overload' | 'logged';

/** Returns the error for a request that is refused because too many others are being answered. */
export function serverBusy(
  description = 'The server is busy. Try again in a moment.',
  cause?: unknown,
): AuthError {
  return new AuthError(503, 'temporarily_unavailable', description, { cause, reported: 'overload' });
}

/** Returns the error for a mailed link that has expired, was used, or never existed. It is the same for all three. */
export function linkExpired(): AuthError {
  return new AuthError(400, 'invalid_request', 'This link has expired or was already used.', {
    extra: { reason: 'link_expired' },
  });
}

/** Writes the errors of a route (docs/reference/wire/errors.md). */
export interface ErrorShape {
  (ctx: Context, error: AuthError): void | Promise<void>;
  /** The name and schema of the error body, for the API document. */
  schema?: { name: string; body: z.ZodType };
  /**
   * Returns the error for a body that does not match the route's schema. Without it the error is worded as in RFC
   * 6749.
   */
  invalid?(faults: readonly BodyFault[]): AuthError;
}

export interface BodyFault {
  /** Undefined when the body is not an object. */
  field: string | undefined;
  /** The value that was sent; undefined when there was none. */
  value: unknown;
  message: string;
}

/** Writes `{error, error_description, …}`: for everything under /oauth, /mfa and /passwordless. */
export const oauthShape: ErrorShape = (ctx: Context, error: AuthError): void => {
  ctx.status = error.status;
  if (isBusy(error)) ctx.set('Retry-After', '1');
  ctx.set('Cache-Control', 'no-store');
  ctx.body = { error: error.error, error_description: error.error_description, ...error.extra };
};

oauthShape.schema = {
  name: 'Error',
  body: z.looseObject({
    error: z.string().describe('A code for programs (RFC 6749 §5.2).'),
    error_description: z.string().describe('A sentence for developers.'),
  }),
};

/**
 * Maps anything thrown to an AuthError. An AuthError stays as it is, a 4xx of Koa's parsers keeps its status, and
 * everything else becomes `server_error`, whose cause is only logged.
 */
export function toAuthError(thrown: unknown, log: Logger): AuthError {
  if (thrown instanceof AuthError) {
    const isFault = thrown.status >= 500 || thrown.cause !== undefined;
    if (isFault && thrown.reported === undefined) log.warn({ err: thrown }, 'request failed');
    return thrown;
  }
  const status = statusOf(thrown);
  if (status !== undefined && status >= 400 && status < 500) {
    return new AuthError(status, 'invalid_request', requestFault(status), { cause: thrown });
  }
  log.error({ err: thrown }, 'unexpected error');
  return new AuthError(500, 'server_error', 'An unexpected error occurred.');
}

/** Reports whether a request may succeed if it is sent again: the server, or what it depends on, is busy or down. */
export function isBusy({ status, error }: AuthError): boolean {
  return status === 503 && error === 'temporarily_unavailable';
}

function statusOf(thrown: unknown): number | undefined {
  if (typeof thrown !== 'object' || thrown === null || !('status' in thrown)) return undefined;
  return typeof thrown.status === 'number' ? thrown.status : undefined;
}

function requestFault(status: number): string {
  if (status === 413) return 'The request body is too large.';
  if (status === 415) return 'The content type of the request is not supported.';
  return 'The request could not be read.';
}
