// Chooses a language for a person: what the request asks for (RFC 9110 §12.5.4; `ui_locales` of OpenID Connect Core
// §3.1.2.1), looked up in the available languages (RFC 4647 §3.4).
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

// docs/understand/decisions/login-pages.md#the-language-of-pages-messages-and-the-question-at-logout-is-chosen-in-one-way
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
 * Returns what is available in the best language: `de` serves `de-AT` (RFC 4647 §3.4).
 * @param available by canonical tag. The cost does not depend on how many there are.
 */
export function matchLanguage<T>(languages: Languages, available: ReadonlyMap<string, T>): T | undefined {
  for (const tag of preferredTags(languages)) {
    const subtags = tag.split('-');
    for (let count = subtags.length; count > 0; count--) {
      const found = available.get(subtags.slice(0, count).join('-'));
      if (found !== undefined) return found;
    }
  }
  return undefined;
}

/**
 * Returns tags by their canonical form. Of those with the same form the first counts; no request finds malformed ones.
 */
export function byCanonicalTag(tags: readonly string[]): ReadonlyMap<string, string> {
  return new Map(tags.toReversed().map((tag) => [canonicalTag(tag) ?? '', tag]));
}

/** Returns the name of a language in that language. */
export function languageName(tag: string): string {
  const canonical = canonicalTag(tag);
  return (canonical && new Intl.DisplayNames([canonical], { type: 'language' }).of(canonical)) ?? tag;
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

/**
 * The well-formed beginning of a tag: language, script, region and up to three variants (RFC 5646 §2.1), each subtag whole. It ends before
 * extensions and private parts (§2.2.6, §2.2.7), and before what `Intl` throws for, which takes long.
 */
const WELL_FORMED =
  /^(?:[a-z]{2,3}|[a-z]{5,8})(?![^-])(?:-[a-z]{4}(?![^-]))?(?:-(?:[a-z]{2}|\d{3})(?![^-]))?((?:-(?:[a-z\d]{5,8}|\d[a-z\d]{3})(?![^-])){0,3})/i;

/** Returns a tag in canonical form without extensions; a malformed end is cut off. */
export function canonicalTag(tag: string): string | undefined {
  const [whole, variants = ''] = WELL_FORMED.exec(tag) ?? [];
  if (whole === undefined) return undefined;
  const all = variants.toLowerCase().split('-');
  // No variant may occur twice (§2.2.5).
  const repeated = all.findIndex((variant, index) => all.indexOf(variant) < index);
  const end = repeated < 0 ? '' : all.slice(repeated).join('-');
  return Intl.getCanonicalLocales(end === '' ? whole : whole.slice(0, -end.length - 1))[0];
}
