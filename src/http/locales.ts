// The messages of the pages, by locale, and which locale a request gets.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';

export type Messages = ReadonlyMap<string, string>;

/** All locales by their tag; English has every message and stands in where another lacks one. */
export type Locales = ReadonlyMap<string, Messages>;

const FALLBACK = 'en';
const RIGHT_TO_LEFT = new Set(['ar', 'fa', 'he', 'ur']);

/** Reads `<directory>/<locale>.json`. @throws Error when a file is not flat JSON of strings, or English is missing. */
export function readLocales(directory: string): Locales {
  const schema = z.record(z.string(), z.string());
  const locales = new Map<string, Messages>();
  for (const file of readdirSync(directory).filter((name) => name.endsWith('.json'))) {
    const messages = schema.parse(JSON.parse(readFileSync(join(directory, file), 'utf8')));
    locales.set(file.slice(0, -'.json'.length), new Map(Object.entries(messages)));
  }
  if (!locales.has(FALLBACK)) throw new Error(`${directory} has no ${FALLBACK}.json`);
  return locales;
}

/**
 * The locale for a request: the first of those preferred that the tenant has enabled and we have, else the
 * tenant's first.
 * @param preferred language tags (RFC 5646), best first: `ui_locales`, then Accept-Language.
 */
export function chooseLocale(
  locales: Locales,
  enabled: readonly string[],
  preferred: readonly string[],
): string {
  const available = enabled.filter((tag) => locales.has(tag));
  for (const tag of preferred) {
    const wanted = tag.toLowerCase();
    const found =
      available.find((a) => a.toLowerCase() === wanted) ?? available.find((a) => a === wanted.split('-')[0]);
    if (found !== undefined) return found;
  }
  return available[0] ?? FALLBACK;
}

/** A message with `{name}` places filled in. A key that no locale has is a fault of ours, and shows as itself. */
export function translate(
  locales: Locales,
  locale: string,
  key: string,
  values: Readonly<Record<string, unknown>>,
): string {
  const message = locales.get(locale)?.get(key) ?? locales.get(FALLBACK)?.get(key) ?? key;
  return message.replace(/\{(\w+)\}/g, (place, name: string) =>
    name in values ? String(values[name]) : place,
  );
}

export function directionOf(locale: string): 'ltr' | 'rtl' {
  return RIGHT_TO_LEFT.has(locale.split('-')[0] ?? '') ? 'rtl' : 'ltr';
}
