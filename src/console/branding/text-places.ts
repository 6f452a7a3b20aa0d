// The texts of our pages that the tenant can have in words of its own, by prompt, screen and key.
import { SCREENS } from '../../pages/custom-texts.ts';
import type { Locale } from '../../pages/locales.ts';
import { withoutReturns } from '../forms.ts';

/** A text that can be set. */
export interface TextPlace {
  screen: string;
  key: string;
  /** Our message that it replaces: the first, where it is several. */
  message: string;
}

/** The places by prompt, in the order of our pages. */
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

/** What a text writes for values, by ours. */
const VALUES: Readonly<Record<string, string>> = {
  client: 'clientName',
  tenant: 'companyName',
  connection: 'connectionName',
  email: 'email',
  address: 'email',
  user: 'userName',
};

/** Our own words, with the places for values as the tenant's texts write them. */
export function defaultText(locale: Locale, message: string): string {
  const values = Object.fromEntries(Object.entries(VALUES).map(([ours, theirs]) => [ours, `\${${theirs}}`]));
  return locale.text(message, values).replaceAll(/[\u2068\u2069]/g, '');
}

/** Texts of a prompt as they are kept: by screen and key. */
export type KeptTexts = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

/** What is kept with what a form says; an empty text is ours. Screens and keys that are not of the form stay. */
export function withTexts(
  before: KeptTexts,
  places: readonly TextPlace[],
  typed: Readonly<Record<string, string>>,
): KeptTexts {
  const after = structuredClone(before) as Record<string, Record<string, unknown>>;
  for (const { screen, key } of places) {
    const text = typed[`${screen}.${key}`];
    if (text === undefined) continue;
    const { [key]: _before, ...others } = after[screen] ?? {};
    after[screen] = text.trim() === '' ? others : { ...others, [key]: withoutReturns(text) };
  }
  return Object.fromEntries(Object.entries(after).filter(([, texts]) => Object.keys(texts).length > 0));
}
