// An authenticator's first use, from which on it counts: of any number that are begun on the word of the first
// factor alone, one becomes the user's first.
import type { AuthenticatorRecord } from '../records/authenticators.ts';
import type { Frozen } from '../records/record.ts';
import { type Collection, UniqueKeyError } from '../store/contract.ts';
import { judge } from '../store/judge.ts';

export interface ConfirmOptions {
  /** Whether it may only be the user's first: of any number of racers one is. */
  first: boolean;
  /**
   * Whether another authenticator counts as the user's first. Recovery codes do not, nor those of a factor that is
   * switched off.
   */
  counts(one: Frozen<AuthenticatorRecord>): boolean;
  /** Gives the user the recovery code that their first authenticator brings. */
  keepRecoveryCode(userId: string, codeHash: string): Promise<void>;
}

/**
 * Confirms an authenticator by its first use; what else was begun and not confirmed is gone.
 * @returns false when it may not be confirmed so.
 */
export async function confirm(
  records: Collection<AuthenticatorRecord>,
  { id, user_id: userId }: Frozen<AuthenticatorRecord>,
  { first, counts, keepRecoveryCode }: ConfirmOptions,
): Promise<boolean> {
  const active = (await records.findBy('user', userId)).filter((one) => !isBegun(one));
  const isFirst = !active.some(counts);
  if (first && !isFirst) return false;
  for (const one of active) if (one.first === true && !counts(one)) await unmark(records, one.id);
  let codeHash: string | undefined;
  const activate = (mark: boolean) =>
    records.update(id, (current) => {
      const { codeHash: brought, expiresAt: _end, credential_version: _begunBy, ...next } = current;
      codeHash = brought;
      return { ...next, active: true, ...(mark && { first: true }) };
    });
  try {
    if ((await activate(isFirst)) === undefined) return false;
  } catch (thrown) {
    if (!(thrown instanceof UniqueKeyError)) throw thrown;
    // Another enrolment has become the user's first meanwhile.
    if (first || (await activate(false)) === undefined) return false;
  }
  if (codeHash !== undefined && isFirst) await keepRecoveryCode(userId, codeHash);
  const begun = (await records.findBy('user', userId)).filter(isBegun);
  await Promise.all(begun.map((one) => removeIf(records, one.id, isBegun)));
  return true;
}

/** Whether it is not confirmed. */
export function isBegun({ active }: Frozen<AuthenticatorRecord>): boolean {
  return !active;
}

/** Removes a record that is as expected, in one step: what was confirmed meanwhile stays. @returns whether it was. */
export async function removeIf(
  records: Collection<AuthenticatorRecord>,
  id: string,
  isRight: (one: Frozen<AuthenticatorRecord>) => boolean,
): Promise<boolean> {
  const isGone = await judge(records, id, (current) =>
    isRight(current) ? { verdict: true, next: { ...current, expiresAt: 1 } } : { verdict: false },
  );
  return isGone === true;
}

async function unmark(records: Collection<AuthenticatorRecord>, id: string): Promise<void> {
  await records.update(id, (current) => {
    const { first: _mark, ...rest } = current;
    return rest;
  });
}
