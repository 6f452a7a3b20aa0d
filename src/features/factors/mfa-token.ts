// The MFA token of `mfa_required` (docs/wire/mfa.md).
import type { CompletedRequest } from '../../engine/second-factor.ts';
import { AuthError } from '../../http/errors.ts';
import { epochSeconds } from '../../runtime/clock.ts';
import type { FactorDependencies } from './factor.ts';

/** Lifetime of an MFA token in seconds, and how many wrong codes it allows. */
const TOKEN_SECONDS = 600;
const TOKEN_TRIES = 10;
const PURPOSE = 'mfa_token';

type TokenDependencies = Pick<FactorDependencies, 'challenges' | 'clock' | 'random' | 'users'>;

/** What an MFA token was issued for. */
export interface MfaSession {
  userId: string;
  clientId: string;
  request: CompletedRequest;
  /** The part of the token that the store keeps as a hash. */
  ticket: string;
}

/** Issues an MFA token for a login that lacks its second factor. */
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
  // The expiry is readable in the token, so that a token whose record is gone still gets `expired_token`.
  return `${secret}.${(epochSeconds(clock) + TOKEN_SECONDS).toString(36)}`;
}

/**
 * Returns what an MFA token was issued for.
 * @param clientId the application that must have received the token; undefined for any.
 * @throws AuthError 401 `expired_token` or `invalid_grant`.
 */
export async function readMfaToken(
  { challenges, clock, users }: TokenDependencies,
  token: string,
  clientId?: string,
): Promise<MfaSession> {
  const [ticket = '', expiry = ''] = token.split('.');
  const verifiedChallenge = await challenges.peekTicket(PURPOSE, ticket);
  if (verifiedChallenge?.userId === undefined) {
    const isExpired = /^[0-9a-z]{5,9}$/.test(expiry) && Number.parseInt(expiry, 36) <= epochSeconds(clock);
    if (isExpired) throw new AuthError(401, 'expired_token', 'mfa_token is expired');
    throw malformed();
  }
  const { clientId: issuedTo, request } = verifiedChallenge.data as {
    clientId: string;
    request: CompletedRequest;
  };
  if (clientId !== undefined && clientId !== issuedTo) throw malformed();
  // The token may have been issued while a new password was being set.
  if ((await users.credentialVersion(verifiedChallenge.userId)) !== request.firstFactor.credentialVersion)
    throw malformed();
  return { userId: verifiedChallenge.userId, clientId: issuedTo, request, ticket };
}

/** Returns the error for a wrong MFA token. SDKs compare its text (docs/wire/mfa.md). */
export function malformed(): AuthError {
  return new AuthError(401, 'invalid_grant', 'Malformed mfa_token');
}

/** Uses an MFA token. @returns false when another request has used it. */
export async function spendMfaToken(
  { challenges }: TokenDependencies,
  { ticket }: MfaSession,
): Promise<boolean> {
  return (await challenges.spendTicket(PURPOSE, ticket)) !== undefined;
}

/** Counts a wrong code against an MFA token. */
export function countMfaTokenFailure(
  { challenges }: TokenDependencies,
  { ticket }: MfaSession,
): Promise<void> {
  return challenges.countFailure(PURPOSE, ticket);
}
