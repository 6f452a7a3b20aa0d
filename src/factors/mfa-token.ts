// The MFA token of `mfa_required` (docs/wire/mfa.md).
import type { CompletedRequest } from '../engine/second-factor.ts';
import { AuthError } from '../http/errors.ts';
import { epochSeconds } from '../runtime/clock.ts';
import type { FactorDependencies } from './factor.ts';

/** An MFA token is good for ten minutes and takes ten wrong codes. */
const TOKEN_SECONDS = 600;
const TOKEN_TRIES = 10;
const PURPOSE = 'mfa_token';

type TokenDependencies = Pick<FactorDependencies, 'challenges' | 'clock' | 'random' | 'users'>;

/** What an MFA token stands for. */
export interface MfaSession {
  userId: string;
  clientId: string;
  request: CompletedRequest;
  /** The part of the token that is kept as a hash. */
  ticket: string;
}

/** Makes an MFA token for a login that lacks its second factor. */
export async function issueMfaToken(
  { challenges, clock, random }: TokenDependencies,
  userId: string,
  clientId: string,
  request: CompletedRequest,
): Promise<string> {
  const { secret } = await challenges.issueTicket({
    purpose: PURPOSE,
    subject: random(16).toString('base64url'),
    userId,
    ttlSeconds: TOKEN_SECONDS,
    tries: TOKEN_TRIES,
    data: { clientId, request: { ...request } },
  });
  // The expiry is readable, so that a token whose record is gone is still `expired_token`.
  return `${secret}.${(epochSeconds(clock) + TOKEN_SECONDS).toString(36)}`;
}

/**
 * What an MFA token stands for, for the application that got it.
 * @throws AuthError 401 `expired_token` or `invalid_grant`.
 */
export async function readMfaToken(
  { challenges, clock, users }: TokenDependencies,
  token: string,
  clientId?: string,
): Promise<MfaSession> {
  const [ticket = '', end = ''] = token.split('.');
  const met = await challenges.peekTicket(PURPOSE, ticket);
  if (met?.userId === undefined) {
    const isOver = /^[0-9a-z]{5,9}$/.test(end) && Number.parseInt(end, 36) <= epochSeconds(clock);
    if (isOver) throw new AuthError(401, 'expired_token', 'mfa_token is expired');
    throw malformed();
  }
  const { clientId: own, request } = met.data as { clientId: string; request: CompletedRequest };
  if (clientId !== undefined && clientId !== own) throw malformed();
  // One that was being issued while a new password was set.
  if ((await users.credentialVersion(met.userId)) !== request.firstFactor.credentialVersion)
    throw malformed();
  return { userId: met.userId, clientId: own, request, ticket };
}

/** SDKs compare the text (docs/wire/mfa.md). */
export function malformed(): AuthError {
  return new AuthError(401, 'invalid_grant', 'Malformed mfa_token');
}

/** Uses an MFA token up. @returns false when somebody else was faster. */
export async function spendMfaToken(
  { challenges }: TokenDependencies,
  { ticket }: MfaSession,
): Promise<boolean> {
  return (await challenges.spendTicket(PURPOSE, ticket)) !== undefined;
}

/** A wrong code counts against the token, too. */
export function penaliseMfaToken({ challenges }: TokenDependencies, { ticket }: MfaSession): Promise<void> {
  return challenges.penalise(PURPOSE, ticket);
}
