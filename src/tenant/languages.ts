// The languages of pages and messages: each is a folder of views/locales, and there is no other list of them.
import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { byCanonicalTag, canonicalTag, isSameLanguage, nearestTag } from '../http/languages.ts';

/** The language that has every message. It stands in where another one lacks a message. */
export const FALLBACK = 'en';

/**
 * Lists the languages in a folder: English, which is the default of a tenant that names none, then the others.
 * @returns the names of the folders, RFC 5646 tags.
 * @throws Error when English is missing, or a folder is not named by a tag.
 */
export function languagesIn(directory: string): string[] {
  const tags = readdirSync(directory, { withFileTypes: true }).flatMap((entry) =>
    entry.isDirectory() ? [entry.name] : [],
  );
  const misnamed = tags.find((tag) => !isTag(tag));
  if (misnamed !== undefined) throw new Error(`${directory}/${misnamed} is not named by a language tag`);
  if (!tags.includes(FALLBACK)) throw new Error(`${directory} has no ${FALLBACK}`);
  return [FALLBACK, ...tags.filter((tag) => tag !== FALLBACK).sort()];
}

/** Reports whether a text is a well-formed tag as a whole, as `Intl` wants it. */
export function isTag(name: string): boolean {
  try {
    return Intl.getCanonicalLocales(name).length === 1;
  } catch {
    return false;
  }
}

export const LANGUAGES: readonly string[] = languagesIn(
  fileURLToPath(new URL('../../views/locales', import.meta.url)),
);

/** Returns the languages of a tenant, the default first: all that there are if it names none. */
export const enabledLocales = (tenant: {
  readonly enabled_locales?: readonly string[] | undefined;
}): readonly string[] => tenant.enabled_locales ?? LANGUAGES;

/** Returns a warning for each of the tenant's languages that there is not, with the one that is shown in its place. */
export function localeWarnings({
  enabled_locales: enabled = [],
}: {
  readonly enabled_locales?: readonly string[] | undefined;
}): string[] {
  const byTag = byCanonicalTag(LANGUAGES);
  return enabled.flatMap((tag, index) => {
    if (LANGUAGES.includes(tag)) return [];
    const at = `tenant.enabled_locales[${index}]`;
    const canonical = canonicalTag(tag);
    const nearest = canonical === undefined ? undefined : byTag.get(nearestTag(canonical, byTag) ?? '');
    if (canonical === undefined || nearest === undefined)
      return [`${at}: there are no texts in ${tag}, and no language near it: it is left out`];
    const isForm = isSameLanguage(canonical, canonicalTag(nearest) ?? nearest);
    return isForm
      ? [`${at}: ${tag} has no texts of its own: those of ${nearest} are shown`]
      : [`${at}: there are no texts in ${tag}: those of ${nearest} are shown, the nearest language`];
  });
}
