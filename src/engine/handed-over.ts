// What is kept of a session that was handed over to its browser, and of one in which somebody acts for its user
// (delegation): that one is short, and asks its user for nothing, who is not there.
import type { Transfer } from '../users/login.ts';
import type { User } from '../users/user.ts';

/** How long a session lasts in which somebody acts for its user, seconds. */
const DELEGATED_SECONDS = 2 * 3600;

/** How a session, or the one that something was granted in, was handed over; undefined for one that began with a login. */
export function transferOf(kept: object | undefined): Transfer | undefined {
  return (kept as { transfer?: Transfer } | undefined)?.transfer;
}

/** When a session ends in which somebody acts for its user, epoch seconds; undefined where nobody does. */
export function delegationEnd(transfer: Transfer | undefined): number | undefined {
  return transfer?.act === undefined ? undefined : transfer.at + DELEGATED_SECONDS;
}

/** What a session keeps of how it was handed over, in place of what it kept. */
export function keptOfTransfer(session: object, transfer: Transfer | undefined): object {
  const expiresAt = delegationEnd(transfer);
  if (expiresAt !== undefined) return { transfer, bounds: { expiresAt }, transient: true };
  const wasDelegated = transferOf(session)?.act !== undefined;
  return { transfer, ...(wasDelegated && { bounds: undefined, transient: undefined }) };
}

/**
 * Whether a second factor would be enrolled by a login that was handed over, which proves nothing anew: the user logs in first.
 * @param secondFactor what tells which second factors a user has.
 */
export async function wouldEnroll(
  secondFactor: { enrolled(user: User): Promise<readonly object[]> },
  transfer: Transfer | undefined,
  user: User | undefined,
): Promise<boolean> {
  return transfer !== undefined && (user === undefined || (await secondFactor.enrolled(user)).length === 0);
}
