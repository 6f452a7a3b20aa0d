// Converts the text of the user search to a query of the Management API.

import { BOOLEAN_FIELDS, EXACT_FIELDS, FOLDED_FIELDS } from '../../../records/search-terms.ts';
import { userFilter } from '../../management/search/users.ts';

/** The maximum lengths of a searched name and of a query, characters. */
const MAX_LENGTHS = { name: 100, query: 2000 };
/** The maximum number of words of a name that are searched one by one. */
const MAX_WORDS = 4;

/** Fields that mark a text as a query rather than a name. Another word before a colon, as in `http:`, does not. */
const FIELDS = [
  ...[...FOLDED_FIELDS, ...EXACT_FIELDS, ...BOOLEAN_FIELDS],
  ...['email.domain', 'user_id', 'last_ip', 'last_login', 'logins_count', 'created_at', 'updated_at'],
  ...['identities.connection', 'identities.provider', 'identities.user_id', 'organization_id'],
  '_exists_',
];
const NAMED_FIELD = new RegExp(
  `(^|[\\s(+!-])(${FIELDS.map((name) => name.replace('.', '\\.')).join('|')}|(app|user)_metadata\\.[^\\s:]+):`,
  'u',
);

// docs/decisions/console-account.md#a-user-search-in-the-console-is-a-query-only-if-it-names-a-field-and-can-be-parsed
/**
 * Returns a query in the search language of `GET /api/v2/users`. A text in that language is used as it is. For any
 * other it finds users whose name, address or number begins with the text, or with each of its words.
 * @returns undefined for an empty text; otherwise a query that can be parsed.
 */
export function userQuery(text: string): string | undefined {
  // PostgreSQL cannot store NUL, and control characters are not part of names.
  const query = text
    .toWellFormed()
    .replaceAll(/\p{Cc}+/gu, ' ')
    .trim()
    .slice(0, MAX_LENGTHS.query);
  if (NAMED_FIELD.test(query) && isValidQuery(query)) return query;
  const name = query.slice(0, MAX_LENGTHS.name).toWellFormed().trim();
  if (name === '') return undefined;
  const words = name.split(/\s+/u).slice(0, MAX_WORDS);
  const whole = [...prefixTerms(name), `user_id:"${name.replaceAll(/["\\]/g, '\\$&')}"`].join(' OR ');
  if (words.length === 1) return whole;
  return `${whole} OR (${words.map((word) => `(${prefixTerms(word).join(' OR ')})`).join(' AND ')})`;
}

function isValidQuery(query: string): boolean {
  try {
    // Assumes the costly kind for every query of metadata; only the store knows.
    userFilter(query, () => true);
    return true;
  } catch {
    // A text that is not a valid query is searched as a name.
    return false;
  }
}

/** Returns search terms for a prefix in all fields by which people are known. */
function prefixTerms(text: string): string[] {
  const phone = text.replaceAll(/[\s()/.-]/g, '');
  return [
    ...FOLDED_FIELDS.map((field) => `${field}:${escaped(text)}*`),
    `username:${escaped(text.toLowerCase())}*`,
    ...(/^\+?\d+$/.test(phone) ? [`phone_number:${escaped(phone)}*`] : []),
  ];
}

/** Escapes everything except letters and digits, since other characters may have a meaning in the search language. */
function escaped(text: string): string {
  return text.replaceAll(/[^\p{L}\p{N}]/gu, '\\$&');
}
