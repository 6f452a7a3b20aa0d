// What a password may be, wherever it comes from.

/** A longer password is refused: it is no better, and hashing it costs the server (bytes of UTF-8). */
export const LONGEST_PASSWORD = 512;

/** The same password typed on two keyboards is the same password (RFC 8265 §4.2): judged and hashed in this form. */
export function normalizePassword(password: string): string {
  return password.normalize('NFC');
}
