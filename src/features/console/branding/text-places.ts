// The texts of pages that a tenant can replace, by prompt, screen and key.
import { SCREENS } from '../../../capabilities/pages/custom-texts.ts';
import type { Locale } from '../../../capabilities/pages/locales.ts';
import { withoutReturns } from '../forms.ts';

/** A text that can be replaced. */
export interface TextPlace {
  screen: string;
  key: string;
  /** Our message that it replaces; the first one where it replaces several. */
  message: string;
}

/** Returns the texts by prompt, in the order of the pages. */
export function placesByPrompt(): ReadonlyMap<string, TextPlace[]> {
  const all = new Map<string, TextPlace[]>();
  for (const texts of Object.values(SCREENS)) {
    for (const [message, place] of Object.entries(texts)) {
      const [prompt = '', screen = '', key = ''] = place.split('/');
      const places = all.get(prompt) ?? [];
      if (!places.some((one) => one.screen === screen && one.key === key))
        places.push({ screen, key, message });
      all.set(prompt, places);
    }
  }
  return all;
}

/** The placeholders in tenants' texts, by the names of our values. */
const VALUES: Readonly<Record<string, string>> = {
  client: 'clientName',
  tenant: 'companyName',
  connection: 'connectionName',
  email: 'email',
  address: 'email',
  user: 'userName',
};

/** Returns our text with placeholders as tenants' texts write them. */
export function defaultText(locale: Locale, message: string): string {
  const values = Object.fromEntries(Object.entries(VALUES).map(([ours, theirs]) => [ours, `\${${theirs}}`]));
  return locale.text(message, values).replaceAll(/[\u2068\u2069]/g, '');
}

/** The tenant's texts of a prompt, by screen and key. */
export type StoredTexts = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

/**
 * Returns the stored texts with the entered ones; an empty text restores the default. Screens and keys that the form
 * does not have are kept.
 */
export function withTexts(
  before: StoredTexts,
  places: readonly TextPlace[],
  entered: Readonly<Record<string, string>>,
): StoredTexts {
  const after = structuredClone(before) as Record<string, Record<string, unknown>>;
  for (const { screen, key } of places) {
    const text = entered[`${screen}.${key}`];
    if (text === undefined) continue;
    const { [key]: _before, ...others } = after[screen] ?? {};
    after[screen] = text.trim() === '' ? others : { ...others, [key]: withoutReturns(text) };
  }
  return Object.fromEntries(Object.entries(after).filter(([, texts]) => Object.keys(texts).length > 0));
}
