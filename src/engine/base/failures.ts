// Maps the engine's errors to the hosted service's. SDKs compare some of these texts byte for byte
// (docs/reference/wire/token.md).
import type { Context } from 'koa';
import type Provider from 'oidc-provider';
import { errors } from 'oidc-provider';
import type { Logger } from 'pino';
import { AuthError, isBusy } from '../../http/errors.ts';

type EngineError = errors.OIDCProviderError;

/** The engine's errors by request. */
export interface EngineFailures {
  of(ctx: Context): Error | undefined;
  /** Records an AuthError to answer with, because the engine cannot carry one. */
  record(ctx: Context, error: AuthError): void;
}

/** Collects the engine's errors; logs server errors. */
export function engineFailures(provider: Provider, log: Logger): EngineFailures {
  const byContext = new WeakMap<object, Error>();
  const keep = (ctx: Context, error: Error) => {
    if (!byContext.has(ctx)) byContext.set(ctx, error);
  };
  provider.on('grant.error', (ctx, error) => keep(ctx, error));
  provider.on('pushed_authorization_request.error', (ctx, error) => keep(ctx, error));
  provider.on('revocation.error', (ctx, error) => keep(ctx, error));
  provider.on('server_error', (ctx, error) => {
    if (!(error instanceof AuthError && isBusy(error)))
      log.error({ err: error, path: ctx.path }, 'engine error');
    keep(ctx, error);
  });
  return { of: (ctx) => byContext.get(ctx), record: keep };
}

/** The `error_detail` for a code or refresh token that a concurrent request used first. */
export const ALREADY_USED = 'already used';
const INVALID_CODE = 'Invalid authorization code';
const INVALID_VERIFIER = 'Failed to verify code verifier';
const INVALID_REFRESH_TOKEN = 'Unknown or invalid refresh token.';
const USER_NOT_FOUND = "The refresh_token was generated for a user who doesn't exist anymore.";
export const WRONG_PASSWORD = 'Wrong email or password.';

/** Maps an error of the token endpoints. @returns undefined when there was none and the engine's answer stays. */
export function vendorError(
  failure: Error | undefined,
  grantType: string | undefined,
): AuthError | undefined {
  if (failure === undefined) return undefined;
  if (failure instanceof AuthError) return failure;
  if (!isEngineError(failure) || failure.status >= 500) {
    return new AuthError(500, 'server_error', 'An unexpected error occurred.');
  }
  const { error, status } = failure;
  const description = failure.error_description ?? '';
  switch (error) {
    case 'temporarily_unavailable':
      return new AuthError(503, error, description);
    // docs/understand/decisions/tokens.md#errors-of-oauthtoken-have-the-statuses-that-sdks-expect
    case 'invalid_client':
      // The answer does not say why a client secret is wrong, but it does say what is wrong with a certificate.
      return new AuthError(
        401,
        error,
        failure instanceof errors.CustomOIDCProviderError ? description : 'Unauthorized',
      );
    case 'invalid_grant':
      return invalidGrant(grantType, failure.error_detail ?? '');
    case 'invalid_request':
      return invalidRequest(status, description, grantType);
    case 'unsupported_grant_type':
      return new AuthError(400, error, `Unsupported grant type: ${grantType ?? ''}`);
    case 'access_denied':
    case 'unauthorized':
      return new AuthError(403, error, description);
    default:
      return new AuthError(status, error, description);
  }
}

/** Whether a refresh token was refused because it was used before, and so may be stolen (RFC 9700 §4.14). */
export function isReuse(failure: Error | undefined): boolean {
  if (failure === undefined || !isEngineError(failure)) return false;
  return REUSED.has(failure.error_detail ?? '');
}

/** Returns why an application was not authenticated, for the log; undefined for other failures. */
export function refusedClientReason(failure: Error | undefined): string | undefined {
  const isRefused = failure !== undefined && isEngineError(failure) && failure.error === 'invalid_client';
  return isRefused ? failure.error_detail : undefined;
}

/** The values of `error_detail` for a used refresh token, the engine's and ours. */
const REUSED = new Set(['refresh token already used', ALREADY_USED]);

function isEngineError(failure: Error): failure is EngineError {
  return 'error' in failure && 'status' in failure;
}

/**
 * Faults of DPoP proofs that the engine reports as `invalid_grant`, with their description as `invalid_dpop_proof`
 * (RFC 9449 §5).
 */
const PROOF_FAULTS: ReadonlyMap<string, string> = new Map([
  ['DPoP proof JWT Replay detected', 'The DPoP proof was used before'],
  ['DPoP proof JWT not provided', 'DPoP proof is required'],
  ['missing DPoP proof JWT', 'DPoP proof is required'],
  ['DPoP proof key thumbprint does not match dpop_jkt', 'The code is bound to another DPoP key'],
]);

function invalidGrant(grantType: string | undefined, detail: string): AuthError {
  const proof = PROOF_FAULTS.get(detail);
  if (proof !== undefined) return new AuthError(400, 'invalid_dpop_proof', proof);
  if (grantType === 'refresh_token') {
    if (detail.includes('referenced account not found'))
      return new AuthError(403, 'invalid_grant', USER_NOT_FOUND);
    return new AuthError(400, 'invalid_grant', INVALID_REFRESH_TOKEN);
  }
  if (detail.includes('code_verifier') || detail.includes('code_challenge')) {
    return new AuthError(400, 'invalid_grant', INVALID_VERIFIER);
  }
  return new AuthError(400, 'invalid_grant', INVALID_CODE);
}

function invalidRequest(status: number, description: string, grantType: string | undefined): AuthError {
  if (description === 'requested grant type is not allowed for this client') {
    return new AuthError(
      403,
      'unauthorized_client',
      `Grant type '${grantType ?? ''}' not allowed for the client.`,
    );
  }
  if (description === 'no client authentication mechanism provided') {
    return new AuthError(400, 'invalid_request', 'Missing required parameter: client_id');
  }
  const missing = /^missing required parameters? (.*)$/.exec(description)?.[1]?.replaceAll("'", '');
  if (missing !== undefined) {
    return new AuthError(400, 'invalid_request', `Missing required parameter: ${missing}`);
  }
  return new AuthError(status, 'invalid_request', description);
}
