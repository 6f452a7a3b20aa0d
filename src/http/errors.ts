// The one error type of Gatehouse, and its mapping to HTTP in one place.
import type { Context } from 'koa';
import type { Logger } from 'pino';

/**
 * A failure that the caller is told about: `error` and `error_description` of RFC 6749 §5.2, the HTTP
 * status, and further members of the body. `cause` goes to the log alone.
 */
export class AuthError extends Error {
  readonly status: number;
  readonly error: string;
  readonly error_description: string;
  readonly extra: Readonly<Record<string, unknown>>;

  constructor(
    status: number,
    error: string,
    error_description: string,
    options: { extra?: Record<string, unknown>; cause?: unknown } = {},
  ) {
    super(error_description, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'AuthError';
    this.status = status;
    this.error = error;
    this.error_description = error_description;
    this.extra = options.extra ?? {};
  }
}

/** A link of a mail that is too old, was used, or never was one: the answer is the same. */
export function linkExpired(): AuthError {
  return new AuthError(400, 'invalid_request', 'This link has expired or was already used.', {
    extra: { reason: 'link_expired' },
  });
}

/** How a route group words its failures (spec "Errors"). */
export type ErrorShape = (ctx: Context, error: AuthError) => void | Promise<void>;

/** `{error, error_description, …}`: everything under /oauth, /mfa, /passwordless. */
export const oauthShape = (ctx: Context, error: AuthError): void => {
  ctx.status = error.status;
  if (isBusy(error)) ctx.set('Retry-After', '1');
  ctx.set('Cache-Control', 'no-store');
  ctx.body = { error: error.error, error_description: error.error_description, ...error.extra };
};

/**
 * Whatever was thrown as what the client is told: an AuthError as it is, a client's fault as koa's parsers report it
 * as 4xx, and all else, a fault of ours, as `server_error`; its cause is for the log alone.
 */
export function toAuthError(thrown: unknown, log: Logger): AuthError {
  if (thrown instanceof AuthError) {
    const isFault = (thrown.status >= 500 && !isBusy(thrown)) || thrown.cause !== undefined;
    if (isFault) log.warn({ err: thrown }, 'request failed');
    return thrown;
  }
  const status = statusOf(thrown);
  if (status !== undefined && status >= 400 && status < 500) {
    return new AuthError(status, 'invalid_request', requestFault(status), { cause: thrown });
  }
  log.error({ err: thrown }, 'unexpected error');
  return new AuthError(500, 'server_error', 'An unexpected error occurred.');
}

/** Whether a request was refused for want of room, which is no fault of it and none of ours. */
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
