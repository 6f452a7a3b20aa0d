// Phone numbers as people write them: with the country chosen, or with + and the country's code.
import { createRequire } from 'node:module';
import type { CountryCode } from 'libphonenumber-js';

/** The numbering plans of all countries: read with the first number, not at each start. */
const plans = () => createRequire(import.meta.url)('libphonenumber-js') as typeof import('libphonenumber-js');

/** The countries with a calling code, by name. @param locale RFC 5646 tag of the language of the names. */
export function countries(locale: string): { code: string; name: string; calling: string }[] {
  const names = new Intl.DisplayNames([locale, 'en'], { type: 'region' });
  const { getCountries, getCountryCallingCode } = plans();
  return getCountries()
    .map((code) => ({ code, name: names.of(code) ?? code, calling: getCountryCallingCode(code) }))
    .sort((a, b) => a.name.localeCompare(b.name, locale));
}

/** A number in E.164; undefined when it is none. @param country where it is, for one without + and the country's code. */
export function numberOf(text: string, country = ''): string | undefined {
  const number = plans().parsePhoneNumberFromString(text, isCountry(country) ? country : undefined);
  return number?.isPossible() === true ? number.number : undefined;
}

function isCountry(code: string): code is CountryCode {
  return (plans().getCountries() as string[]).includes(code);
}
