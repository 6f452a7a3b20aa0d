// What somebody types to find users, as a query of the Management API.
import { userFilter } from '../../management/search/users.ts';
import { BOOLEAN_FIELDS, EXACT_FIELDS, FOLDED_FIELDS } from '../../records/search-terms.ts';

/** Characters that are looked at: more is no name, and a query is longer than what it is made of. */
const LONGEST = { name: 100, query: 2000 };
/** Words of a name that are looked for one by one. */
const MOST_WORDS = 4;

/** Names of fields that make a text a query and no name: `http:` makes none. */
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

/**
 * The query of a text, in the search language of `GET /api/v2/users`. One that is written in that language is taken as it
 * is; of any other, users are found whose name, address or number begins with it, or with each of its words.
 * @returns undefined for a text that asks for nothing. What is returned can always be read.
 */
export function userQuery(text: string): string | undefined {
  // PostgreSQL keeps no NUL, and nobody's name has control characters.
  const written = text
    .toWellFormed()
    .replaceAll(/\p{Cc}+/gu, ' ')
    .trim()
    .slice(0, LONGEST.query);
  if (NAMED_FIELD.test(written) && isReadable(written)) return written;
  const asked = written.slice(0, LONGEST.name).toWellFormed().trim();
  if (asked === '') return undefined;
  const words = asked.split(/\s+/u).slice(0, MOST_WORDS);
  const whole = [...beginningsOf(asked), `user_id:"${asked.replaceAll(/["\\]/g, '\\$&')}"`].join(' OR ');
  if (words.length === 1) return whole;
  return `${whole} OR (${words.map((word) => `(${beginningsOf(word).join(' OR ')})`).join(' AND ')})`;
}

function isReadable(query: string): boolean {
  try {
    // As if each query of metadata were the costly kind: whether it is, only the store knows.
    userFilter(query, () => true);
    return true;
  } catch {
    // Whatever is wrong with it, it is looked for as a name.
    return false;
  }
}

/** Terms of all fields that people are known by, whose values begin with a text. */
function beginningsOf(text: string): string[] {
  const phone = text.replaceAll(/[\s()/.-]/g, '');
  return [
    ...FOLDED_FIELDS.map((field) => `${field}:${escaped(text)}*`),
    `username:${escaped(text.toLowerCase())}*`,
    ...(/^\+?\d+$/.test(phone) ? [`phone_number:${escaped(phone)}*`] : []),
  ];
}

/** Letters and digits mean nothing else; of all others the language decides what they mean. */
function escaped(text: string): string {
  return text.replaceAll(/[^\p{L}\p{N}]/gu, '\\$&');
}
