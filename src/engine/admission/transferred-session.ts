// Sessions that were transferred to a browser (session_transfer_token), and among them those in which somebody acts
// for the user (delegation). Delegated sessions are short and never ask the user for anything, because the user is
// not there.
import type { Login, Transfer } from '../../users/login.ts';
import type { User } from '../../users/user.ts';
import { lackFor } from '../../users/user-acts.ts';

/** Lifetime of a session in which somebody acts for the user, seconds. */
const DELEGATED_SECONDS = 2 * 3600;

/**
 * The transfer that a session, or the session of a grant, began with; undefined for one that began with a login.
 */
export function transferOf(artifact: object | undefined): Transfer | undefined {
  return (artifact as { transfer?: Transfer } | undefined)?.transfer;
}

/**
 * Returns when a session ends in which somebody acts for the user, epoch seconds; undefined for any other session.
 */
export function delegationEnd(transfer: Transfer | undefined): number | undefined {
  return transfer?.act === undefined ? undefined : transfer.at + DELEGATED_SECONDS;
}

/** Returns the members by which a session records its transfer. They replace those of an earlier one. */
export function transferMembers(session: object, transfer: Transfer | undefined): object {
  const expiresAt = delegationEnd(transfer);
  if (expiresAt !== undefined) return { transfer, bounds: { expiresAt }, transient: true };
  const wasDelegated = transferOf(session)?.act !== undefined;
  return { transfer, ...(wasDelegated && { bounds: undefined, transient: undefined }) };
}

/**
 * Whether a login in which nobody was there would have to enroll a second factor because its user has none. The user has
 * to log in first.
 * @param secondFactor returns the second factors that a user has.
 */
export async function wouldEnroll(
  secondFactor: { enrolledFactors(user: User): Promise<readonly object[]> },
  login: Pick<Login, 'presence'>,
  user: User | undefined,
): Promise<boolean> {
  return (
    lackFor('first_factor', login, 0) !== undefined &&
    (user === undefined || (await secondFactor.enrolledFactors(user)).length === 0)
  );
}
