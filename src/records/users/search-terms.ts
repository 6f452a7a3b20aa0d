// The search index of users. Each searchable value is one text: the field's name, a line feed and the value. The
// store keeps these sorted, so that values and prefixes are found directly.
// docs/understand/decisions/management-api.md#user-searches-use-an-index-of-the-users-values
import { domainOf } from '../base/email.ts';
import type { UserRecord } from './users.ts';

/** Fields that are searched without regard to case. */
export const FOLDED_FIELDS = ['email', 'name', 'given_name', 'family_name', 'nickname'] as const;
export const EXACT_FIELDS = ['username', 'phone_number'] as const;
export const BOOLEAN_FIELDS = ['email_verified', 'blocked'] as const;
const METADATA = ['user_metadata', 'app_metadata'] as const;

/** Longer values are found by their beginning. Names and addresses are never this long. */
const MAX_TERM_LENGTH = 512;
/** Highest number of indexed values of one metadata object, because every change of the user writes them all. */
const MAX_MEMBERS = 100;
const MAX_MEMBER_LENGTH = 256;

/** Returns a text in the form that ignores case. */
export const folded = (text: string): string => text.normalize('NFC').toLowerCase();

export function fieldTerm(field: string, value: string): string {
  return `${field}\n${value.slice(0, MAX_TERM_LENGTH)}`;
}

/** Returns the index entry of a value within metadata. The text "1" and the number 1 differ. */
export function memberTerm(path: string, value: string | number | boolean): string {
  return `${path}\n${(typeof value)[0] ?? ''}${value}`;
}

/**
 * Returns the index entry of users whose metadata has more values, or longer ones, than the index holds. Searches
 * read their records.
 */
export function restTerm(object: string): string {
  return `${object}\n+`;
}

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

/** Adds the values at a path and below. @returns whether all of them were added */
function collect(path: string, value: unknown, terms: Set<string>): boolean {
  if (value === null || value === undefined) return true;
  if (path.length > MAX_MEMBER_LENGTH) return false;
  if (Array.isArray(value)) return value.every((one) => collect(path, one, terms));
  if (typeof value === 'object') {
    return Object.entries(value).every(([name, one]) => collect(`${path}.${name}`, one, terms));
  }
  if (typeof value !== 'string' && typeof value !== 'number' && typeof value !== 'boolean') return true;
  const term = memberTerm(path, value);
  if (terms.size >= MAX_MEMBERS || term.length > MAX_MEMBER_LENGTH) return false;
  terms.add(term);
  return true;
}
