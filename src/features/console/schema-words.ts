// Words the refusals of schemas in the reader's language.
import { z } from 'zod';
import { issueMessage } from '../management/errors.ts';

/** The wordings of Zod in the languages of the console. English uses the wording of the Management API. */
const WORDINGS: Readonly<Record<string, () => { localeError: z.core.$ZodErrorMap }>> = {
  de: z.locales.de,
  ar: z.locales.ar,
};

/**
 * Returns the function that words a fault in a language. Messages that a schema defines itself stay English.
 * @param language the tag of a locale.
 */
export function wordingIn(language: string): (issue: z.core.$ZodIssue) => string {
  const localeError = WORDINGS[language.split('-')[0] ?? '']?.().localeError;
  if (localeError === undefined) return issueMessage;
  return (issue) => {
    if (issue.code === 'custom') return issueMessage(issue);
    // A reported issue can be worded again: it has the members from which Zod words a raw one.
    const message = localeError(issue as z.core.$ZodRawIssue);
    return (typeof message === 'string' ? message : message?.message) ?? issueMessage(issue);
  };
}
