// Recovery codes: one a user, brought by their first authenticator, used once and then replaced. Only a hash is kept.
import { SECOND_FACTORS } from '../../records/second-factors.ts';
import type { Random } from '../../runtime/random.ts';
import { hashSecret, isSameSecret } from '../../runtime/secrets.ts';
import { judge } from '../../store/judge.ts';
import { type Authenticator, type Authenticators, onlyId } from '../authenticators.ts';

interface CodeDependencies {
  authenticators: Authenticators;
  random: Random;
}

/** The kind of a recovery code's record, and what its id begins with. */
export const { kind: KIND, prefix: PREFIX } = SECOND_FACTORS['recovery-code'];

/** The id of a user's recovery code. */
export const recoveryCodeId = (userId: string) => onlyId(PREFIX, userId);

/** Letters and digits that are not mistaken for one another. */
const ALPHABET = 'ABCDEFGHJKLMNPQRSTUVWXYZ23456789';
const LENGTH = 24;

/** A recovery code that is the user's as soon as an authenticator is confirmed, and nothing if it never is. */
export async function bringRecoveryCode(
  { authenticators, random }: CodeDependencies,
  { id }: Authenticator,
): Promise<string> {
  const code = newCode(random);
  await authenticators.update(id, (current) => ({ ...current, codeHash: hashSecret(code) }));
  return code;
}

/** A recovery code that is nobody's yet. @returns it, and what of it is kept ({@link keepRecoveryCode}). */
export function prepareRecoveryCode(random: Random): { code: string; codeHash: string } {
  const code = newCode(random);
  return { code, codeHash: hashSecret(code) };
}

/** Makes a recovery code the user's that their first authenticator has brought. */
export function keepRecoveryCode(
  { authenticators }: Pick<CodeDependencies, 'authenticators'>,
  userId: string,
  codeHash: string,
): Promise<void> {
  return authenticators.put({ id: recoveryCodeId(userId), user_id: userId, kind: KIND, codeHash });
}

/** A new recovery code for the user, the one before is dead. */
export async function renewRecoveryCode(deps: CodeDependencies, userId: string): Promise<string> {
  const code = newCode(deps.random);
  await keepRecoveryCode(deps, userId, hashSecret(code));
  return code;
}

/** Uses the user's recovery code up. @returns the one that takes its place; undefined for a wrong one. */
export async function useRecoveryCode(
  { authenticators, random }: CodeDependencies,
  userId: string,
  code: string,
): Promise<string | undefined> {
  const given = hashSecret(code.replace(/[\s-]/g, '').toUpperCase());
  const next = newCode(random);
  const isRight = await judge(authenticators, recoveryCodeId(userId), (current) =>
    isSameSecret(current.codeHash ?? '', given)
      ? { verdict: true, next: { ...current, codeHash: hashSecret(next) } }
      : { verdict: false },
  );
  return isRight === true ? next : undefined;
}

function newCode(random: Random): string {
  return Array.from(random(LENGTH), (byte) => ALPHABET[byte % ALPHABET.length]).join('');
}
