// Phone numbers as identifiers.
import { createRequire } from 'node:module';

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
