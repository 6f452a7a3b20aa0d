// Chooses a language for a person: what the request asks for (RFC 9110 §12.5.4; `ui_locales` of OpenID Connect Core
// §3.1.2.1), looked up in the available languages (RFC 4647 §3.4).
import { match } from '@formatjs/intl-localematcher';
import type { Context } from 'koa';
import Negotiator from 'negotiator';

/**
 * Language lists of a request, the most important first. Each is in the form of `Accept-Language` (commas, `q`) or
 * `ui_locales` (spaces), unchecked.
 */
export type Languages = readonly string[];

/** Limits on the characters and tags read of each list; browsers send less. */
const MAX_LIST_LENGTH = 1000;
const MAX_TAGS = 30;
/** Language, extended language, script, region and a variant or two (RFC 5646 §2.1). */
const MAX_SUBTAGS = 6;

const NO_MATCH = 'und';

// docs/decisions/login-pages.md#the-language-of-pages-messages-and-the-question-at-logout-is-chosen-in-one-way
/**
 * Returns the language lists of a request: `ui_locales`, then `X-Request-Language`, which SDKs send because they
 * cannot set `Accept-Language`, then `Accept-Language`. A later list counts only when the earlier ones match nothing.
 */
export function languagesOf(ctx: Context, uiLocales = ''): Languages {
  const lists = [uiLocales, ctx.get('X-Request-Language'), ctx.get('Accept-Language')];
  return lists.filter((list) => list.trim() !== '');
}

/** Returns the requested language tags, best first, in canonical form; malformed ones are dropped. */
export function preferredTags(languages: Languages): string[] {
  return languages.flatMap((list) => {
    const header = list
      .slice(0, MAX_LIST_LENGTH)
      .replace(/\s+/g, ' ')
      .replace(/ ?([,;=]) ?/g, '$1')
      .trim()
      .replaceAll(' ', ',');
    const ranges = new Negotiator({ headers: { 'accept-language': header } }).languages();
    // This also drops `*`, which a lookup ignores (RFC 4647 §3.4).
    return ranges.slice(0, MAX_TAGS).flatMap((range) => canonicalTag(range) ?? []);
  });
}

/**
 * Returns the best available language: `de` serves `de-AT` (RFC 4647 §3.4).
 * @param available tags in any case.
 * @returns a tag as spelled in `available`, or undefined when none fits.
 */
export function matchLanguage(languages: Languages, available: readonly string[]): string | undefined {
  const preferred = preferredTags(languages);
  if (preferred.length === 0) return undefined;
  const known = new Map<string, string>();
  for (const tag of available) {
    const canonical = canonicalTag(tag);
    if (canonical !== undefined && !known.has(canonical)) known.set(canonical, tag);
  }
  // The algorithm "best fit" would cache every tag ever requested, so that strangers could fill the memory.
  const found = match(preferred, [...known.keys()], NO_MATCH, { algorithm: 'lookup' });
  return known.get(found);
}

/**
 * Returns the country suggested by the languages: the region of the first tag, or else its likely region (CLDR likely
 * subtags).
 * @returns ISO 3166-1 alpha-2; `US` by default.
 */
export function countryOf(languages: Languages): string {
  for (const tag of preferredTags(languages)) {
    for (const range of [tag, new Intl.Locale(tag).language]) {
      const { region = '' } = new Intl.Locale(range).maximize();
      // UN M.49 codes such as `419` are skipped: they have no phone prefix.
      if (/^[A-Z]{2}$/.test(region)) return region;
    }
  }
  return 'US';
}

/** Returns a tag in canonical form without extensions; a malformed end is cut off. */
function canonicalTag(tag: string): string | undefined {
  const subtags = tag.split('-', MAX_SUBTAGS);
  for (let count = subtags.length; count > 0; count--) {
    try {
      return new Intl.Locale(subtags.slice(0, count).join('-')).baseName;
    } catch {
      // Intl throws for malformed tags.
    }
  }
  return undefined;
}
