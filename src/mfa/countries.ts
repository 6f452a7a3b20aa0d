// Phone numbers as people write them: with the country chosen, or with + and the country's code.
import {
  type CountryCode,
  getCountries,
  getCountryCallingCode,
  parsePhoneNumberFromString,
} from 'libphonenumber-js';

/** The countries with a calling code, by name in a language. */
export function countries(locale: string): { code: string; name: string; calling: string }[] {
  const names = new Intl.DisplayNames([locale, 'en'], { type: 'region' });
  return getCountries()
    .map((code) => ({ code, name: names.of(code) ?? code, calling: getCountryCallingCode(code) }))
    .sort((a, b) => a.name.localeCompare(b.name, locale));
}

/** The country that a language suggests: `de-AT` is Austria's. */
export function countryOf(languages: string): string | undefined {
  for (const tag of languages.split(/[,;\s]+/)) {
    const region = /^[a-z]{2,3}-([A-Z]{2})$/i.exec(tag)?.[1]?.toUpperCase();
    if (region !== undefined && isCountry(region)) return region;
  }
  return undefined;
}

/** A number in E.164; undefined when it is none. */
export function numberOf(text: string, country: string): string | undefined {
  const number = parsePhoneNumberFromString(text, isCountry(country) ? country : undefined);
  return number?.isPossible() === true ? number.number : undefined;
}

function isCountry(code: string): code is CountryCode {
  return (getCountries() as string[]).includes(code);
}
