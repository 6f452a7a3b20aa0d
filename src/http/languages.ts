// Chooses the language for a person: what the request asks for (RFC 9110 §12.5.4; OpenID Connect Core §3.1.2.1
// `ui_locales`), looked up in the available ones (RFC 4647 §3.4).
import { match } from '@formatjs/intl-localematcher';
import type { Context } from 'koa';
import Negotiator from 'negotiator';

/**
 * Language lists of a request, the most important first. Each is in the form of `Accept-Language` (commas, `q`) or
 * `ui_locales` (spaces), unchecked.
 */
export type Languages = readonly string[];

/** Characters and tags read of each list; browsers send less. */
const LONGEST_LIST = 1000;
const MOST_TAGS = 30;
/** Language, extended language, script, region and a variant or two (RFC 5646 §2.1). */
const MOST_SUBTAGS = 6;

const NOTHING_FITS = 'und';

/**
 * The language lists of a request: `ui_locales`, then `X-Request-Language`, which SDKs use because they cannot set the
 * browser's own header, then `Accept-Language`. A later list counts when an earlier one matches nothing.
 */
export function languagesOf(ctx: Context, uiLocales = ''): Languages {
  const lists = [uiLocales, ctx.get('X-Request-Language'), ctx.get('Accept-Language')];
  return lists.filter((list) => list.trim() !== '');
}

/** The requested language tags, best first, in canonical form; malformed ones are dropped. */
export function preferredTags(languages: Languages): string[] {
  return languages.flatMap((list) => {
    const header = list
      .slice(0, LONGEST_LIST)
      .replace(/\s+/g, ' ')
      .replace(/ ?([,;=]) ?/g, '$1')
      .trim()
      .replaceAll(' ', ',');
    const ranges = new Negotiator({ headers: { 'accept-language': header } }).languages();
    // `*` is dropped, too: it is ignored in a lookup (RFC 4647 §3.4).
    return ranges.slice(0, MOST_TAGS).flatMap((range) => canonicalTag(range) ?? []);
  });
}

/**
 * The best available language: `de` serves `de-AT` (RFC 4647 §3.4).
 * @param available tags; the case does not matter.
 * @returns one of `available` as it is spelled there, or undefined when none fits.
 */
export function matchLanguage(languages: Languages, available: readonly string[]): string | undefined {
  const preferred = preferredTags(languages);
  if (preferred.length === 0) return undefined;
  const known = new Map<string, string>();
  for (const tag of available) {
    const canonical = canonicalTag(tag);
    if (canonical !== undefined && !known.has(canonical)) known.set(canonical, tag);
  }
  // "best fit" caches every tag ever requested, so that strangers could fill the memory.
  const found = match(preferred, [...known.keys()], NOTHING_FITS, { algorithm: 'lookup' });
  return known.get(found);
}

/**
 * The country suggested by the languages: the first tag's region, else its likely region (CLDR likely subtags).
 * @returns ISO 3166-1 alpha-2, `US` by default.
 */
export function countryOf(languages: Languages): string {
  for (const tag of preferredTags(languages)) {
    for (const range of [tag, new Intl.Locale(tag).language]) {
      const { region = '' } = new Intl.Locale(range).maximize();
      // Not a UN M.49 code such as `419`, which has no phone prefix.
      if (/^[A-Z]{2}$/.test(region)) return region;
    }
  }
  return 'US';
}

/** A tag in canonical form without extensions; a malformed end is cut off. */
function canonicalTag(tag: string): string | undefined {
  const subtags = tag.split('-', MOST_SUBTAGS);
  for (let count = subtags.length; count > 0; count--) {
    try {
      return new Intl.Locale(subtags.slice(0, count).join('-')).baseName;
    } catch {
      // Intl throws for malformed tags.
    }
  }
  return undefined;
}
