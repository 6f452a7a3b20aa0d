// What users are found by: each of their searchable values as one text, its name, a line feed and the value. The
// store keeps them in order, so that a value and the beginning of one are found at once.
import { domainOf } from './email.ts';
import type { UserRecord } from './users.ts';

/** Text in which capitals do not count. */
export const FOLDED_FIELDS = ['email', 'name', 'given_name', 'family_name', 'nickname'] as const;
/** Text that is found as it is written. */
export const EXACT_FIELDS = ['username', 'phone_number'] as const;
export const BOOLEAN_FIELDS = ['email_verified', 'blocked'] as const;
const METADATA = ['user_metadata', 'app_metadata'] as const;

/** What is longer is found by its beginning; names and addresses are never so long. */
const LONGEST = 512;
/** Values of one metadata object that are kept so: whoever fills it pays for each at every change. */
const MOST_MEMBERS = 100;
const LONGEST_MEMBER = 256;

/** The form in which capitals do not count. */
export const folded = (text: string): string => text.normalize('NFC').toLowerCase();

/** A value of a field, as it is kept. */
export function fieldTerm(field: string, value: string): string {
  return `${field}\n${value.slice(0, LONGEST)}`;
}

/** A value within metadata, as it is kept: the text "1" is not the number. */
export function memberTerm(path: string, value: string | number | boolean): string {
  return `${path}\n${(typeof value)[0] ?? ''}${value}`;
}

/** Said of a user whose metadata has more values, or longer ones, than are kept: it is read itself. */
export function restTerm(object: string): string {
  return `${object}\n+`;
}

/** All of a user. */
export function searchTerms(user: UserRecord): string[] {
  const domain = user.email === undefined ? undefined : domainOf(user.email);
  return [
    ...FOLDED_FIELDS.flatMap((name) => termOf(name, user[name], folded)),
    ...EXACT_FIELDS.flatMap((name) => termOf(name, user[name], String)),
    ...BOOLEAN_FIELDS.flatMap((name) =>
      typeof user[name] === 'boolean' ? [fieldTerm(name, String(user[name]))] : [],
    ),
    ...termOf('email.domain', domain, folded),
    ...METADATA.flatMap((name) => memberTerms(name, user[name])),
  ];
}

function termOf(name: string, value: unknown, form: (text: string) => string): string[] {
  return typeof value === 'string' ? [fieldTerm(name, form(value))] : [];
}

function memberTerms(object: string, value: unknown): string[] {
  const terms = new Set<string>();
  const isWhole = collect(object, value, terms);
  return isWhole ? [...terms] : [...terms, restTerm(object)];
}

/** Adds what is at a path and below it. @returns whether all of it was added. */
function collect(path: string, value: unknown, terms: Set<string>): boolean {
  if (value === null || value === undefined) return true;
  if (path.length > LONGEST_MEMBER) return false;
  if (Array.isArray(value)) return value.every((one) => collect(path, one, terms));
  if (typeof value === 'object') {
    return Object.entries(value).every(([name, one]) => collect(`${path}.${name}`, one, terms));
  }
  if (typeof value !== 'string' && typeof value !== 'number' && typeof value !== 'boolean') return true;
  const term = memberTerm(path, value);
  if (terms.size >= MOST_MEMBERS || term.length > LONGEST_MEMBER) return false;
  terms.add(term);
  return true;
}
