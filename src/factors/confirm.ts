// An authenticator's first use, from which on it counts: of any number that are begun on the word of the first
// factor alone, one becomes the user's first.
import type { AuthenticatorRecord } from '../records/authenticators.ts';
import type { Frozen } from '../records/record.ts';
import { type Collection, UniqueKeyError } from '../store/contract.ts';

export interface ConfirmOptions {
  /** Whether it may only be the user's first: of any number of racers one is. */
  first: boolean;
  /** The id of the token that it is confirmed with, where there is one. */
  by?: string | undefined;
  /** Whether authenticators of a kind count: one whose factor is switched off stands in nobody's way. */
  counts(kind: AuthenticatorRecord['kind']): boolean;
}

/**
 * Confirms an authenticator by its first use; what else was begun and not confirmed is gone.
 * @param putRecoveryCode gives the user the recovery code that the authenticator brings.
 * @returns false when it may not be confirmed so.
 */
export async function confirm(
  records: Collection<AuthenticatorRecord>,
  { id, user_id: userId }: Frozen<AuthenticatorRecord>,
  { first, counts }: ConfirmOptions,
  putRecoveryCode: (userId: string, codeHash: string) => Promise<void>,
): Promise<boolean> {
  const all = await records.findBy('user', userId);
  const active = all.filter((one) => one.active && one.kind !== 'recovery-code');
  const isFirst = !active.some(({ kind }) => counts(kind));
  if (first && !isFirst) return false;
  for (const one of active) if (one.first === true && !counts(one.kind)) await unmark(records, one.id);
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
    // Somebody else's became the first meanwhile.
    if (first || (await activate(false)) === undefined) return false;
  }
  if (codeHash !== undefined && isFirst) await putRecoveryCode(userId, codeHash);
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
  let isGone = false;
  await records.update(id, (current) => {
    isGone = isRight(current);
    return isGone ? { ...current, expiresAt: 1 } : current;
  });
  return isGone;
}

async function unmark(records: Collection<AuthenticatorRecord>, id: string): Promise<void> {
  await records.update(id, (current) => {
    const { first: _mark, ...rest } = current;
    return rest;
  });
}
