// Phone numbers as people type them: with a country chosen from a list, or with + and the calling code.
import { createRequire } from 'node:module';
import type { CountryCode } from 'libphonenumber-js';

/** Returns the numbering plans. They are loaded with the first number and not at each start. */
const plans = () => createRequire(import.meta.url)('libphonenumber-js') as typeof import('libphonenumber-js');

/**
 * Returns the countries that have a calling code, sorted by name.
 * @param locale RFC 5646 tag of the names' language.
 */
export function countries(locale: string): { code: string; name: string; calling: string }[] {
  const names = new Intl.DisplayNames([locale, 'en'], { type: 'region' });
  const { getCountries, getCountryCallingCode } = plans();
  return getCountries()
    .map((code) => ({ code, name: names.of(code) ?? code, calling: getCountryCallingCode(code) }))
    .sort((a, b) => a.name.localeCompare(b.name, locale));
}

/**
 * Returns a number in E.164; undefined when it is invalid.
 * @param country for a number without + and calling code.
 */
export function numberOf(text: string, country = ''): string | undefined {
  const number = plans().parsePhoneNumberFromString(text, isCountry(country) ? country : undefined);
  return number?.isPossible() === true ? number.number : undefined;
}

function isCountry(code: string): code is CountryCode {
  return (plans().getCountries() as string[]).includes(code);
}
