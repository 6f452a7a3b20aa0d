// The one place that decides which language a person is addressed in: what a request asks for (RFC 9110 §12.5.4;
// OpenID Connect Core 1.0 §3.1.2.1 `ui_locales`), looked up in what there is (RFC 4647 §3.4).
import { match } from '@formatjs/intl-localematcher';
import type { Context } from 'koa';
import Negotiator from 'negotiator';

/**
 * What a request says of its user's languages, what counts most first. Each is a list as `Accept-Language` has it
 * (commas, `q`) or as `ui_locales` has it (spaces); nothing of it has been checked.
 */
export type Languages = readonly string[];

/** Of each list this many characters and tags are read: what is longer was not written by a browser. */
const LONGEST_LIST = 1000;
const MOST_TAGS = 30;
/** Language, extended language, script, region and a variant or two (RFC 5646 §2.1). */
const MOST_SUBTAGS = 6;

const NOTHING_FITS = 'und';

/**
 * What a request says of languages: `ui_locales`, then `X-Request-Language`, which SDKs have because the browser's
 * own header is not theirs to set, then `Accept-Language`. A later one counts where an earlier one fits nothing.
 */
export function languagesOf(ctx: Context, uiLocales = ''): Languages {
  const lists = [uiLocales, ctx.get('X-Request-Language'), ctx.get('Accept-Language')];
  return lists.filter((list) => list.trim() !== '');
}

/** The language tags that are asked for, best first, well-formed and in canonical case; never throws. */
export function preferredTags(languages: Languages): string[] {
  return languages.flatMap((list) => {
    const header = list
      .slice(0, LONGEST_LIST)
      .replace(/\s+/g, ' ')
      .replace(/ ?([,;=]) ?/g, '$1')
      .trim()
      .replaceAll(' ', ',');
    const ranges = new Negotiator({ headers: { 'accept-language': header } }).languages();
    // `*` goes with what is malformed: in a lookup it says nothing of what is wanted (RFC 4647 §3.4).
    return ranges.slice(0, MOST_TAGS).flatMap((range) => canonicalTag(range) ?? []);
  });
}

/**
 * Which of the languages there are is wanted most: `de-AT` is content with `de` (RFC 4647 §3.4 lookup).
 * @param available tags; the case does not matter.
 * @returns one of `available` as it is spelled there, or undefined when none fits.
 */
export function matchLanguage(languages: Languages, available: readonly string[]): string | undefined {
  const known = new Map<string, string>();
  for (const tag of available) {
    const canonical = canonicalTag(tag);
    if (canonical !== undefined && !known.has(canonical)) known.set(canonical, tag);
  }
  // Not the matcher's "best fit": it keeps each tag it was ever asked for, so that strangers could fill the memory.
  const found = match(preferredTags(languages), [...known.keys()], NOTHING_FITS, { algorithm: 'lookup' });
  return known.get(found);
}

/**
 * The country that the languages suggest: the region of the most wanted tag, or where that language is spoken by
 * most (CLDR likely subtags). @returns ISO 3166-1 alpha-2, `US` where nothing suggests another.
 */
export function countryOf(languages: Languages): string {
  for (const tag of preferredTags(languages)) {
    for (const range of [tag, new Intl.Locale(tag).language]) {
      const { region = '' } = new Intl.Locale(range).maximize();
      // Not `419`: Latin America has no prefix for its phones.
      if (/^[A-Z]{2}$/.test(region)) return region;
    }
  }
  return 'US';
}

/** A tag in canonical form without extensions; of one that goes wrong at its end the part before that. */
function canonicalTag(tag: string): string | undefined {
  const subtags = tag.split('-', MOST_SUBTAGS);
  for (let count = subtags.length; count > 0; count--) {
    try {
      return new Intl.Locale(subtags.slice(0, count).join('-')).baseName;
    } catch {
      // Intl has no other way to say that a tag is malformed.
    }
  }
  return undefined;
}
