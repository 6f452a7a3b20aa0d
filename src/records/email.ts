// E-mail addresses as identifiers.

/** RFC 5321 §4.5.3.1: the longest address that e-mail can be sent to. */
const MAX_LENGTH = 254;

/** One @, something before it, a domain with a dot or a single label, no spaces or control characters. */
const ADDRESS = /^[^\s@<>()[\],;:\\"\p{Cc}]+@[^\s@<>()[\],;:\\"\p{Cc}.]+(\.[^\s@<>()[\],;:\\"\p{Cc}.]+)*$/u;

/** Returns the domain of an address; undefined if it is not an address. */
export function domainOf(text: string): string | undefined {
  return normalizeEmail(text)?.split('@')[1];
}

/**
 * Returns the form in which an address is stored and looked up: trimmed, lower case, NFC. In this order, because some
 * lower-case letters have a composed form and their capitals do not.
 * @returns undefined if it is not an address.
 */
export function normalizeEmail(text: string): string | undefined {
  const email = text.trim().toLowerCase().normalize('NFC');
  return email.length <= MAX_LENGTH && ADDRESS.test(email) ? email : undefined;
}
