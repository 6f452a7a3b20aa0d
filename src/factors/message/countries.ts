// Phone numbers as people write them: with the country chosen, or with + and the country's code.
import {
  type CountryCode,
  getCountries,
  getCountryCallingCode,
  parsePhoneNumberFromString,
} from 'libphonenumber-js';

/** The countries with a calling code, by name. @param locale RFC 5646 tag of the language of the names. */
export function countries(locale: string): { code: string; name: string; calling: string }[] {
  const names = new Intl.DisplayNames([locale, 'en'], { type: 'region' });
  return getCountries()
    .map((code) => ({ code, name: names.of(code) ?? code, calling: getCountryCallingCode(code) }))
    .sort((a, b) => a.name.localeCompare(b.name, locale));
}

/** A number in E.164; undefined when it is none. @param country where it is, for one without + and the country's code. */
export function numberOf(text: string, country = ''): string | undefined {
  const number = parsePhoneNumberFromString(text, isCountry(country) ? country : undefined);
  return number?.isPossible() === true ? number.number : undefined;
}

function isCountry(code: string): code is CountryCode {
  return (getCountries() as string[]).includes(code);
}
