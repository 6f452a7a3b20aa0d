// Recovery codes. A user has one, made with the first authenticator, and each use replaces it. Only its hash is
// stored.
import { SECOND_FACTORS } from '../../../records/users/second-factors.ts';
import type { Random } from '../../../runtime/secrets.ts';
import { hashSecret, isSameSecret } from '../../../runtime/secrets.ts';
import type { Write } from '../../../store/contract.ts';
import { updateWithResult } from '../../../store/contract.ts';
import { type Authenticator, type Authenticators, singleId } from '../authenticators.ts';

interface CodeDependencies {
  authenticators: Authenticators;
  random: Random;
}

/** The kind of a recovery code's record, and the prefix of its id. */
export const { kind: RECOVERY_KIND, prefix: RECOVERY_PREFIX } = SECOND_FACTORS['recovery-code'];

export const recoveryCodeId = (userId: string) => singleId(RECOVERY_PREFIX, userId);

// docs/understand/decisions/second-factors.md#a-recovery-code-has-24-letters-and-digits-and-is-valid-once
/** Letters and digits without those that look alike. */
const ALPHABET = 'ABCDEFGHJKLMNPQRSTUVWXYZ23456789';
const LENGTH = 24;

/**
 * Makes a recovery code for an authenticator that was begun. It becomes the user's when the authenticator is
 * confirmed.
 */
export async function attachRecoveryCode(
  { authenticators, random }: CodeDependencies,
  { id }: Authenticator,
): Promise<string> {
  const code = newCode(random);
  await authenticators.update(id, (current) => ({ ...current, codeHash: hashSecret(code) }));
  return code;
}

/** Makes a recovery code that is not stored yet. @returns it, and the hash to store with {@link saveRecoveryCode}. */
export function prepareRecoveryCode(random: Random): { code: string; codeHash: string } {
  const code = newCode(random);
  return { code, codeHash: hashSecret(code) };
}

/** Stores a user's recovery code, in place of any other. @param also written in the same batch, before. */
export function saveRecoveryCode(
  { authenticators }: Pick<CodeDependencies, 'authenticators'>,
  userId: string,
  codeHash: string,
  also: readonly Write[] = [],
): Promise<void> {
  const code = { id: recoveryCodeId(userId), user_id: userId, kind: RECOVERY_KIND, codeHash };
  return authenticators.put(code, also);
}

/** @returns the new one. */
export async function renewRecoveryCode(deps: CodeDependencies, userId: string): Promise<string> {
  const code = newCode(deps.random);
  await saveRecoveryCode(deps, userId, hashSecret(code));
  return code;
}

/** @returns the one that replaces it; undefined for a wrong one. */
export async function useRecoveryCode(
  { authenticators, random }: CodeDependencies,
  userId: string,
  code: string,
): Promise<string | undefined> {
  const hash = hashSecret(code.replace(/[\s-]/g, '').toUpperCase());
  const next = newCode(random);
  const isRight = await updateWithResult(authenticators, recoveryCodeId(userId), (current) =>
    isSameSecret(current.codeHash ?? '', hash)
      ? { result: true, next: { ...current, codeHash: hashSecret(next) } }
      : { result: false },
  );
  return isRight === true ? next : undefined;
}

function newCode(random: Random): string {
  return Array.from(random(LENGTH), (byte) => ALPHABET[byte % ALPHABET.length]).join('');
}
