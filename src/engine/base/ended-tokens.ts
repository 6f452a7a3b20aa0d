// Decides whether a token of ours has ended before it expires. Wherever this server accepts one that it does not
// store, this is asked. docs/decisions.md has the table of what ends which token.
import type { JWTPayload } from 'jose';
import type { User } from '../../users/user.ts';
import type { Users } from '../../users/users.ts';

export interface EndedTokenDependencies {
  users: Pick<Users, 'credentialVersion'>;
  /** @see Sessions.isOpen */
  isOpen(sid: string): Promise<boolean>;
}

/** Whether a token names its login: access tokens for our own APIs do ({@link SecondFactor.tokenClaims}). */
export function namesLogin({ factors_changed: factors }: JWTPayload): boolean {
  return typeof factors === 'string';
}

/** Returns the session of a token that names its login; undefined without a session. */
export function sessionOfToken(claims: JWTPayload): string | undefined {
  return namesLogin(claims) && typeof claims.sid === 'string' ? claims.sid : undefined;
}

/** The claim with the time of issue in epoch milliseconds. Only tokens that need it have it (email-at-issue.ts). */
export const ISSUED_AT_MS = 'iat_ms';

/** Returns when older tokens of a user were ended, epoch milliseconds: by a new password, and with all their access. */
export function endsOf({ last_password_reset: reset, access_ended_at: ended }: User): number[] {
  return [reset, ended].flatMap((at) => (at === undefined ? [] : Date.parse(at)));
}

/**
 * Whether a token was issued before older ones were ended. One that tells only the second counts as issued when the
 * second began.
 */
export function isBeforeEnd(user: User, { iat, [ISSUED_AT_MS]: precise }: JWTPayload): boolean {
  const issuedAt = typeof precise === 'number' ? precise : Number(iat) * 1000;
  return endsOf(user).some((at) => issuedAt < at);
}

/**
 * Whether a token has ended although it has not expired. It was verified, and its user is the one given, whose admission is
 * the caller's to check.
 */
export async function isTokenEnded(
  { users, isOpen }: EndedTokenDependencies,
  user: User,
  claims: JWTPayload,
): Promise<boolean> {
  if (isBeforeEnd(user, claims)) return true;
  if (!namesLogin(claims)) return false;
  const sid = sessionOfToken(claims);
  const [version, isSessionOpen] = await Promise.all([
    users.credentialVersion(user.id),
    sid === undefined || isOpen(sid),
  ]);
  return version !== claims.credential_version || !isSessionOpen;
}
