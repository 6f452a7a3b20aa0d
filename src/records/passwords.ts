// The form of passwords.

/** Longer passwords are refused, because hashing them is expensive. In bytes of UTF-8. */
export const MAX_PASSWORD_LENGTH = 512;

/**
 * Returns a password in the form in which it is checked and hashed, so that it does not depend on the keyboard (RFC
 * 8265 §4.2).
 */
export function normalizePassword(password: string): string {
  return password.normalize('NFC');
}
