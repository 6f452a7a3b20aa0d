// Confirms an authenticator by its first use. Several may have been begun by logins that proved only the first
// factor; the unique mark `first` lets one of them become the user's first.

import type { Frozen } from '../../records/base/record.ts';
import { type AuthenticatorRecord, factorsTurn, LEFT_BEHIND } from '../../records/users/authenticators.ts';
import {
  type Collection,
  type Store,
  UniqueKeyError,
  updateWithResult,
  type Write,
} from '../../store/contract.ts';
import { writeInTurn } from '../../store/write-in-turn.ts';
import { letsEnrolWrite } from '../../users/left-factors.ts';

/** How many confirmed authenticators a user may have, without the recovery code. */
export const MAX_CONFIRMED = 20;

export interface ConfirmOptions {
  // docs/understand/decisions/second-factors.md#enrolling-with-an-mfa-token-can-only-confirm-the-users-first-authenticator
  /** Whether it may only become the user's first authenticator. Of several concurrent calls one succeeds. */
  first: boolean;
  /**
   * Returns whether an existing authenticator is a second factor already. Recovery codes are not, nor are
   * authenticators of a factor that is switched off.
   */
  isSecondFactor(one: Frozen<AuthenticatorRecord>): boolean;
  /** Written in the same batch, before. */
  also: readonly Write[];
  /** Stores the recovery code that was made with the user's first authenticator. */
  saveRecoveryCode(userId: string, codeHash: string): Promise<void>;
}

/**
 * Makes an authenticator active, and removes the user's unconfirmed ones.
 * @returns false when `first` is set and the user has a second factor, when the user has too many, or when the
 *   authenticator is gone.
 */
export async function confirm(
  store: Store,
  { id, user_id: userId }: Frozen<AuthenticatorRecord>,
  { first, isSecondFactor, also, saveRecoveryCode }: ConfirmOptions,
): Promise<boolean> {
  const records = store.collection('authenticators');
  let codeHash: string | undefined;
  let isFirst = false;
  let isDone = false;
  const activate = (mayMark: boolean) =>
    writeInTurn(store, factorsTurn(userId), async () => {
      isDone = false;
      const active = (await records.findBy('user', userId)).filter((one) => !isUnconfirmed(one));
      isFirst = !active.some(isSecondFactor);
      if ((first && !isFirst) || active.filter(isNoRecoveryCode).length >= MAX_CONFIRMED) return undefined;
      for (const one of active)
        if (one.first === true && !isSecondFactor(one)) await removeFirstMark(records, one.id);
      const change = (current: Frozen<AuthenticatorRecord>): AuthenticatorRecord => {
        const { codeHash: attachedHash, expiresAt: _end, credential_version: _begunBy, ...next } = current;
        codeHash = attachedHash;
        isDone = true;
        return { ...next, active: true, ...(isFirst && mayMark && { first: true }) } as AuthenticatorRecord;
      };
      const had = active.some(({ kind }) => kind === LEFT_BEHIND) ? [letsEnrolWrite(userId)] : [];
      return [...also, ...had, { collection: 'authenticators', update: id, change }];
    });
  try {
    await activate(true);
  } catch (thrown) {
    if (!(thrown instanceof UniqueKeyError)) throw thrown;
    // Another authenticator became the user's first in the meantime.
    if (first) return false;
    await activate(false);
  }
  if (!isDone) return false;
  if (codeHash !== undefined && isFirst) await saveRecoveryCode(userId, codeHash);
  const unconfirmed = (await records.findBy('user', userId)).filter(isUnconfirmed);
  await Promise.all(unconfirmed.map((one) => removeIf(records, one.id, isUnconfirmed)));
  return true;
}

/** Among confirmed authenticators only the recovery code has a `codeHash`. */
const isNoRecoveryCode = ({ codeHash }: Frozen<AuthenticatorRecord>) => codeHash === undefined;

/** Returns whether an authenticator is begun but not confirmed. */
export function isUnconfirmed({ active }: Frozen<AuthenticatorRecord>): boolean {
  return !active;
}

/** Removes a record if it meets a condition, atomically. @returns whether it was removed. */
export async function removeIf(
  records: Collection<AuthenticatorRecord>,
  id: string,
  condition: (one: Frozen<AuthenticatorRecord>) => boolean,
): Promise<boolean> {
  const isRemoved = await updateWithResult(records, id, (current) =>
    condition(current) ? { result: true, next: { ...current, expiresAt: 1 } } : { result: false },
  );
  return isRemoved === true;
}

async function removeFirstMark(records: Collection<AuthenticatorRecord>, id: string): Promise<void> {
  await records.update(id, (current) => {
    const { first: _mark, ...rest } = current;
    return rest;
  });
}
