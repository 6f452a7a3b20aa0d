// Phone numbers as identifiers.
import { createRequire } from 'node:module';

/** The numbering plans of all countries: read with the first number, not at each start. */
const plans = () => createRequire(import.meta.url)('libphonenumber-js') as typeof import('libphonenumber-js');

/** The pattern that a refusal names, as the hosted service's does. */
const PHONE = /^\+[0-9]{1,15}$/;

/**
 * The form under which a number is kept and looked up: E.164.
 * @returns undefined for what is no number, or has no country code.
 */
export function normalizePhone(text: string): string | undefined {
  const number = text.replace(/[\s().-]/g, '');
  if (!PHONE.test(number)) return undefined;
  const parsed = plans().parsePhoneNumberFromString(number);
  return parsed?.isPossible() === true ? parsed.number : undefined;
}
