// E-mail addresses as identifiers.

import { createRequire } from 'node:module';
import { domainToASCII } from 'node:url';
import { z } from 'zod';

/** RFC 5321 §4.5.3.1: the longest address that e-mail can be sent to. */
const MAX_LENGTH = 254;

/** One @, something before it, a domain with a dot or a single label, no spaces or control characters. */
const ADDRESS = /^[^\s@<>()[\],;:\\"\p{Cc}]+@[^\s@<>()[\],;:\\"\p{Cc}.]+(\.[^\s@<>()[\],;:\\"\p{Cc}.]+)*$/u;

/**
 * An ASCII character that is in no domain. Node's functions would stop at some, decode after others, and turn further
 * letters into some, such as a comma, which would separate two addresses of a mail.
 */
const NO_DOMAIN = /[^a-z\d._\-\u0080-\u{10ffff}]/u;

// docs/understand/decisions/users-linking.md#new-addresses-have-no-invisible-characters
/**
 * Characters without width and marks of direction. RFC 8264 §9.13 and §9.8 exclude them from identifiers, or allow them in
 * a few contexts: two addresses that look the same would be two accounts.
 */
const INVISIBLE = /[\p{Cf}\p{Default_Ignorable_Code_Point}]/u;

const isInternational = (domain: string) => /[^\0-\x7f]|(?:^|\.)xn--/.test(domain);

// docs/understand/decisions/users-linking.md#an-e-mail-address-has-one-spelling
/**
 * Returns the one spelling in which a domain is stored and compared: lower case, with international labels as A-labels
 * (RFC 5890 §2.3.2.1). Browsers send `bücher.example` so, from a field for an e-mail address; other programs do not.
 * @returns undefined if it is not a domain.
 */
export function canonicalDomain(domain: string): string | undefined {
  const lower = domain.toLowerCase();
  if (!isInternational(lower)) return lower;
  const ascii = NO_DOMAIN.test(lower) ? '' : domainToASCII(lower);
  // The function reads a domain as that of a URL, where figures of any script are an IPv4 address.
  const isDomain = !NO_DOMAIN.test(ascii) && !ascii.split('.').includes('') && !/(?:^|\.)\d+$/.test(ascii);
  if (isDomain) return ascii;
  return /^[\0-\x7f]*$/.test(lower) ? lower : undefined;
}

/** Returns the domain of an address; undefined if it is not an address. */
export function domainOf(text: string): string | undefined {
  return lookupEmail(text)?.split('@')[1];
}

/**
 * Returns the form in which an address is stored: trimmed, lower case, NFC, its domain by {@link canonicalDomain}. In this
 * order, because some lower-case letters have a composed form and their capitals do not.
 * @returns undefined if it is not an address, or has invisible characters.
 */
export function normalizeEmail(text: string): string | undefined {
  return INVISIBLE.test(text) ? undefined : lookupEmail(text);
}

/**
 * As {@link normalizeEmail}, also for addresses with invisible characters: users of custom databases may have one, and a
 * username in that form would be taken for an address.
 */
export function lookupEmail(text: string): string | undefined {
  const email = text.trim().toLowerCase().normalize('NFC');
  if (email.length > MAX_LENGTH || !ADDRESS.test(email)) return undefined;
  const [name = '', written = ''] = email.split('@');
  const domain = canonicalDomain(written);
  return domain === undefined || name.length + domain.length >= MAX_LENGTH ? undefined : `${name}@${domain}`;
}

/** The schema of an address in a request; its output is the address as it was sent. */
export const emailSchema = z
  .string()
  .max(320)
  .refine((text) => normalizeEmail(text) !== undefined, "Object didn't pass validation for format email")
  .meta({ format: 'email' });

export function isSameEmail(one: string, other: string): boolean {
  const email = lookupEmail(one);
  return email !== undefined && email === lookupEmail(other);
}

// Phone numbers as identifiers.

/**
 * Returns the library with the numbering plans, which is loaded when the first number is parsed, not at each start.
 */
const plans = () => createRequire(import.meta.url)('libphonenumber-js') as typeof import('libphonenumber-js');

/** The pattern that error messages show, as at the hosted service. */
const PHONE = /^\+[0-9]{1,15}$/;

/**
 * Returns a phone number in E.164 format, in which numbers are stored and looked up.
 * @returns undefined if it is not a possible number, or has no country code
 */
export function normalizePhone(text: string): string | undefined {
  const number = text.replace(/[\s().-]/g, '');
  if (!PHONE.test(number)) return undefined;
  const parsed = plans().parsePhoneNumberFromString(number);
  return parsed?.isPossible() === true ? parsed.number : undefined;
}
