// Password hashes that other systems made: judged when they are imported, verified at a login, and then replaced.
import type { z } from 'zod';
import { ALGORITHMS, type Compare } from './algorithms.ts';
import { type CustomHash, customPasswordHash, HashFault, passwordBytes } from './parts.ts';

/** What a stored hash that is no hash of ours begins with. */
const PREFIX = '$imported$';

/** Whether a stored hash is one of an import. */
export function isImported(hash: string): boolean {
  return hash.startsWith(PREFIX);
}

/** A hash of an import file as it is stored, or why it is not taken. */
type Judged = { hash: string } | { fault: string; issue?: z.core.$ZodIssue };

/** Judges a `custom_password_hash`. */
export function judgeHash(value: unknown): Judged {
  const read = customPasswordHash.safeParse(value, { reportInput: true });
  if (!read.success) {
    const [issue] = read.error.issues;
    return { fault: issue?.message ?? 'Invalid hash', ...(issue && { issue }) };
  }
  try {
    comparerOf(read.data);
  } catch (thrown) {
    if (thrown instanceof HashFault) return { fault: thrown.message };
    throw thrown;
  }
  return { hash: PREFIX + Buffer.from(JSON.stringify(read.data)).toString('base64url') };
}

/** Judges a `password_hash`: bcrypt, `$2a$` or `$2b$`. */
export function judgeBcrypt(value: string): Judged {
  const judged = judgeHash({ algorithm: 'bcrypt', hash: { value } });
  // Bcrypt without a salt is stored as it is: hashes of earlier releases are, too.
  return 'hash' in judged ? { hash: value } : judged;
}

/** The `custom_password_hash` that a stored hash of an import was. */
export function customHashOf(hash: string): CustomHash {
  return customPasswordHash.parse(JSON.parse(Buffer.from(hash.slice(PREFIX.length), 'base64url').toString()));
}

/** Whether a password is right for a stored hash of an import. */
export async function verifyImported(hash: string, password: string): Promise<boolean> {
  const custom = customHashOf(hash);
  const bytes = passwordBytes(password, custom);
  return bytes !== undefined && comparerOf(custom)(bytes);
}

/** @throws HashFault */
function comparerOf(custom: CustomHash): Compare {
  if (!Object.hasOwn(ALGORITHMS, custom.algorithm))
    throw new HashFault(`algorithm must be one of ${Object.keys(ALGORITHMS).join(', ')}.`);
  const algorithm = ALGORITHMS[custom.algorithm];
  if (algorithm === undefined) throw new HashFault('There is no such algorithm.');
  return algorithm(custom);
}
