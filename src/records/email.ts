// E-mail addresses as identifiers.

/** RFC 5321 §4.5.3.1: the longest address that mail can be sent to. */
const LONGEST = 254;

/** One @, something before it, a domain with a dot or a single label, no spaces or control characters. */
const ADDRESS = /^[^\s@<>()[\],;:\\"\p{Cc}]+@[^\s@<>()[\],;:\\"\p{Cc}.]+(\.[^\s@<>()[\],;:\\"\p{Cc}.]+)*$/u;

/** The domain of an address; undefined when it is none. */
export function domainOf(text: string): string | undefined {
  return normalizeEmail(text)?.split('@')[1];
}

/**
 * The form under which an address is kept and looked up: trimmed, lower case, NFC. In this order: some small
 * letters are composed where their capitals cannot be.
 * @returns undefined when it is no address.
 */
export function normalizeEmail(text: string): string | undefined {
  const email = text.trim().toLowerCase().normalize('NFC');
  return email.length <= LONGEST && ADDRESS.test(email) ? email : undefined;
}
