// Password hashes of other systems: checked when they are imported, and verified at the first login, which replaces them.
import type { z } from 'zod';
import { ALGORITHMS, type Compare } from './algorithms.ts';
import { type CustomHash, customPasswordHash, HashFault, passwordBytes } from './parts.ts';

/** The prefix of a stored hash that was imported. */
const PREFIX = '$imported$';

/** Returns whether a stored hash was imported as a `custom_password_hash`. */
export function isImported(hash: string): boolean {
  return hash.startsWith(PREFIX);
}

/** An imported hash as it is stored, or why it is refused. */
type CheckedHash = { hash: string } | { fault: string; issue?: z.core.$ZodIssue };

/** Checks a `custom_password_hash` and returns it as it is stored. */
export function checkHash(value: unknown): CheckedHash {
  const parsed = customPasswordHash.safeParse(value, { reportInput: true });
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    return { fault: issue?.message ?? 'Invalid hash', ...(issue && { issue }) };
  }
  try {
    comparerOf(parsed.data);
  } catch (thrown) {
    if (thrown instanceof HashFault) return { fault: thrown.message };
    throw thrown;
  }
  return { hash: PREFIX + Buffer.from(JSON.stringify(parsed.data)).toString('base64url') };
}

/** Checks a `password_hash`, which is a bcrypt hash, and returns it as it is stored. */
export function checkBcrypt(value: string): CheckedHash {
  const checked = checkHash({ algorithm: 'bcrypt', hash: { value } });
  // Bcrypt without a salt of its own is stored unchanged, as earlier releases did.
  return 'hash' in checked ? { hash: value } : checked;
}

/** Returns the `custom_password_hash` of a stored hash. */
export function customHashOf(hash: string): CustomHash {
  return customPasswordHash.parse(JSON.parse(Buffer.from(hash.slice(PREFIX.length), 'base64url').toString()));
}

/** Returns whether a password matches a stored hash that was imported. */
export async function verifyImported(hash: string, password: string): Promise<boolean> {
  const custom = customHashOf(hash);
  const bytes = passwordBytes(password, custom);
  return bytes !== undefined && comparerOf(custom)(bytes);
}

/** Returns the comparison of a hash. @throws HashFault if the hash is not accepted. */
function comparerOf(custom: CustomHash): Compare {
  if (!Object.hasOwn(ALGORITHMS, custom.algorithm))
    throw new HashFault(`algorithm must be one of ${Object.keys(ALGORITHMS).join(', ')}.`);
  const algorithm = ALGORITHMS[custom.algorithm];
  if (algorithm === undefined) throw new HashFault('There is no such algorithm.');
  return algorithm(custom);
}
