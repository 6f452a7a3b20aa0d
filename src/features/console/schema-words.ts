// Words the refusals of schemas in the reader's language.
import { z } from 'zod';
import { FALLBACK } from '../../tenant/languages.ts';
import { issueMessage } from '../management/management-errors.ts';

/** Zod's wordings by language, as it names them: `frCA`. */
const WORDINGS: Readonly<Record<string, () => { localeError: z.core.$ZodErrorMap }>> = z.locales;

/** Returns Zod's wording in a language. English uses the wording of the Management API. */
function zodWording(tag: string): z.core.$ZodErrorMap | undefined {
  const [language = ''] = tag.split('-');
  const name = [tag.replace('-', ''), language].find((one) => Object.hasOwn(WORDINGS, one));
  return language === FALLBACK || name === undefined ? undefined : WORDINGS[name]?.().localeError;
}

/** Messages that a schema defines itself stay English. @param language the tag of a locale. */
export function wordingIn(language: string): (issue: z.core.$ZodIssue) => string {
  const localeError = zodWording(language);
  if (localeError === undefined) return issueMessage;
  return (issue) => {
    if (issue.code === 'custom') return issueMessage(issue);
    // A reported issue can be worded again: it has the members from which Zod words a raw one.
    const message = localeError(issue as z.core.$ZodRawIssue);
    return (typeof message === 'string' ? message : message?.message) ?? issueMessage(issue);
  };
}
