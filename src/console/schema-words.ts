// What a schema refuses, in the reader's language.
import { z } from 'zod';
import { faultWording } from '../management/errors.ts';

/** How schemas word what is wrong, in the languages of the console; in English as the Management API does. */
const WORDINGS: Readonly<Record<string, () => { localeError: z.core.$ZodErrorMap }>> = {
  de: z.locales.de,
  ar: z.locales.ar,
};

/**
 * What words a fault in a language; what a schema says in words of its own stays English.
 * @param language of a locale, as its tag begins.
 */
export function wordingIn(language: string): (issue: z.core.$ZodIssue) => string {
  const localeError = WORDINGS[language.split('-')[0] ?? '']?.().localeError;
  if (localeError === undefined) return faultWording;
  return (issue) => {
    if (issue.code === 'custom') return faultWording(issue);
    // What is reported of a fault is what it was worded by.
    const said = localeError(issue as z.core.$ZodRawIssue);
    return (typeof said === 'string' ? said : said?.message) ?? faultWording(issue);
  };
}
