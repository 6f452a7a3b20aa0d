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
 * Returns the language lists of a request: what the reader chose on a page, then `ui_locales`, then `X-Request-Language`, which
 * SDKs send because they cannot set `Accept-Language`, then `Accept-Language`. A later list counts only when the earlier ones
 * match nothing.
 */
export function languagesOf(ctx: Context, uiLocales = ''): Languages {
  const chosen = ctx.cookies.get(LANGUAGE_COOKIE) ?? '';
  const lists = [chosen, uiLocales, ctx.get('X-Request-Language'), ctx.get('Accept-Language')];
  // Cut here as well: the lists are stored with messages that wait.
  return lists.map((list) => list.slice(0, MAX_LIST_LENGTH)).filter((list) => list.trim() !== '');
}

/** Keeps the language that a reader chose. The prefix keeps other hosts from setting it (RFC 6265bis §4.1.3.2). */
const LANGUAGE_COOKIE = '__Host-gatehouse_language';

/** Remembers a language for a year. */
export function rememberLanguage(ctx: Context, tag: string): void {
  const maxAge = 365 * 86_400_000;
  ctx.cookies.set(LANGUAGE_COOKIE, tag, { httpOnly: true, secure: true, sameSite: 'lax', path: '/', maxAge });
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
 * Returns what is available in the best language, or the nearest one: `de` serves `de-AT` (RFC 4647 §3.4), `fr-FR` serves
 * `fr` and `fr-CA`, and `zh-TW` serves `zh-Hant`. An exact match precedes a near one, and the order of the request the nearness.
 * @param available by canonical tag; of several that are equally near the first counts.
 */
export function matchLanguage<T>(languages: Languages, available: ReadonlyMap<string, T>): T | undefined {
  for (const tag of preferredTags(languages)) {
    const found = nearestTag(tag, available);
    if (found !== undefined) return available.get(found);
  }
  return undefined;
}

// docs/understand/decisions/login-pages.md#the-nearest-language-is-found-by-rules-of-cldr-and-is-never-listed
/**
 * Languages that stand for another (CLDR language aliases and matching): Norwegian without a form is Bokmål, and who reads
 * one of the others reads the one beside it more easily than a third language.
 */
const SAME: Readonly<Record<string, string>> = { no: 'nb' };
const NEAR: Readonly<Record<string, string>> = { nn: 'nb', nb: 'nn', bs: 'hr' };

/** Regions of Spanish, and of English, that are not part of the group which has a form of its own (CLDR parent locales). */
const LATIN_AMERICA = new Set('AR BO BR BZ CL CO CR CU DO EC GT HN MX NI PA PE PR PY SV US UY VE'.split(' '));
const AMERICAN = new Set('AS BI GU MH MP PH PR UM US VI'.split(' '));

/** Returns the region whose form of a language is written in another region, if that is not the language's own. */
function parentRegion({ language, script, region }: Form): string | undefined {
  if (language === 'es') return LATIN_AMERICA.has(region) ? '419' : undefined;
  if (language === 'pt') return region === 'BR' ? undefined : 'PT';
  if (language === 'en') return AMERICAN.has(region) ? undefined : 'GB';
  return script === 'Hant' && region === 'MO' ? 'HK' : undefined;
}

const languageOf = (tag: string) => {
  const [language = ''] = tag.split('-', 1);
  return SAME[language] ?? language;
};

interface Form {
  language: string;
  script: string;
  region: string;
}

/** Returns language, script and region of a tag, with the likely ones for those that it lacks (CLDR likely subtags). */
function likely(tag: string): Form {
  const { script = '', region = '' } = new Intl.Locale(tag).maximize();
  return { language: languageOf(tag), script, region };
}

/** Returns a search among the available forms of a language for the one in a script and region. */
function formsOf(language: string, available: Iterable<string>) {
  const tags = [...available].filter((tag) => languageOf(tag) === language);
  const forms = tags.map((tag) => ({ tag, ...likely(tag) }));
  const find = (script: string, region?: string) =>
    forms.find((form) => form.script === script && (region === undefined || form.region === region))?.tag;
  return { tags, find };
}

/** Returns the region in which a language is written in a script, if nothing else is said. */
const ownRegion = ({ language, script }: Form) => likely(`${language}-${script}`).region;

/**
 * Returns the available tag that is nearest to a tag: the same one, the same language of the same region, of the region
 * that writes the same, of the language's own region, of any, and at last in another script.
 * @param available canonical, as the tag itself. The cost grows with those of the same language.
 */
export function nearestTag(tag: string, available: ReadonlyMap<string, unknown>): string | undefined {
  if (available.has(tag)) return tag;
  const { tags, find } = formsOf(languageOf(tag), available.keys());
  if (tags.length === 0) {
    const near = NEAR[languageOf(tag)];
    return near === undefined ? undefined : formsOf(near, available.keys()).tags[0];
  }
  const form = likely(tag);
  const parent = parentRegion(form);
  return (
    find(form.script, form.region) ??
    (parent && find(form.script, parent)) ??
    find(form.script, ownRegion(form)) ??
    find(form.script) ??
    tags[0]
  );
}

/** Reports whether two tags are of one language. */
export const isSameLanguage = (one: string, other: string): boolean => languageOf(one) === languageOf(other);

/**
 * Returns the tag that has what a regional one lacks: `es` for `es-419`, `fr-FR` for `fr-CA`, `zh-TW` for `zh-HK`.
 * @param available canonical, as the tag itself.
 * @returns undefined for one that stands for itself, such as `fr-FR` or `de`.
 */
export function baseTag(tag: string, available: Iterable<string>): string | undefined {
  const others = [...available].filter((one) => one !== tag);
  const form = likely(tag);
  const own = ownRegion(form);
  if (form.region === own && SAME[tag] === undefined) return undefined;
  const { find } = formsOf(form.language, others);
  const parent = parentRegion(form);
  return (parent && parent !== form.region && find(form.script, parent)) || find(form.script, own);
}

/**
 * Returns tags by their canonical form. Of those with the same form the first counts; no request finds malformed ones.
 */
export function byCanonicalTag(tags: readonly string[]): ReadonlyMap<string, string> {
  const byTag = new Map<string, string>();
  for (const tag of tags) {
    const canonical = canonicalTag(tag) ?? '';
    if (!byTag.has(canonical)) byTag.set(canonical, tag);
  }
  return byTag;
}

/** Scripts in which a name that stands alone begins with a capital letter. */
const WITH_CAPITALS = new Set(['Latn', 'Cyrl', 'Grek', 'Armn']);

/**
 * Returns the names of languages for a list of them, by tag, each in itself. The region is named only where the list has the
 * same language twice: `Français`, but `Português (Brasil)` beside `Português (Portugal)`.
 */
export function languageNames(tags: readonly string[]): ReadonlyMap<string, string> {
  const forms = tags.flatMap((tag) => {
    const canonical = canonicalTag(tag);
    return canonical === undefined ? [] : [{ tag, canonical, ...likely(canonical) }];
  });
  const names = forms.map(({ tag, canonical, language, script }): [string, string] => {
    const isAlone = forms.filter((one) => one.language === language && one.script === script).length === 1;
    const named = new Intl.Locale(canonical);
    // Chinese is called by its script.
    const withScript = language === 'zh' ? `${language}-${script}` : named.language;
    const shown = isAlone || named.region === undefined ? withScript : `${withScript}-${named.region}`;
    const name = new Intl.DisplayNames([canonical], { type: 'language', style: 'short' }).of(shown) ?? tag;
    const [first = '', ...rest] = name;
    return [tag, WITH_CAPITALS.has(script) ? first.toLocaleUpperCase(canonical) + rest.join('') : name];
  });
  return new Map([...tags.map((tag): [string, string] => [tag, tag]), ...names]);
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
