// The search fields of users.
import { canonicalDomain, lookupEmail } from '../../../records/base/email.ts';
import {
  BOOLEAN_FIELDS,
  EXACT_FIELDS,
  FOLDED_FIELDS,
  fieldTerm,
  folded,
  memberTerm,
  restTerm,
} from '../../../records/users/search-terms.ts';
import type { Filter, IndexFilter } from '../../../store/contract.ts';
import { type Match, parseQuery } from './lucene.ts';
import {
  dateFilter,
  fieldWildcard,
  filterOf,
  MATCHES_NOTHING,
  numberOf,
  rangeOf,
  searchError,
  wildcardOf,
} from './terms.ts';

/**
 * The fields that a term without a field is searched in. Metadata that users can write themselves is not among them.
 */
const DEFAULTS = [...FOLDED_FIELDS, ...EXACT_FIELDS, 'user_id'];

type Term = (field: string, match: Match) => Filter;

const term = (fields: readonly string[], one: Term) => fields.map((name): [string, Term] => [name, one]);

const FIELDS: ReadonlyMap<string, Term> = new Map([
  ...term(
    FOLDED_FIELDS.filter((field) => field !== 'email'),
    (field, match) => textFilter(field, match, folded),
  ),
  ...term(['email'], emailFilter),
  ...term(['email.domain'], (field, match) => textFilter(field, match, inDomain)),
  ...term(EXACT_FIELDS, (field, match) => textFilter(field, match, String)),
  ...term(BOOLEAN_FIELDS, booleanFilter),
  ...term(['created_at', 'updated_at', 'last_login'], dateFilter),
  ...term(['user_id', 'last_ip'], (field, match) => plainFilter(field === 'user_id' ? 'id' : field, match)),
  ...term(['logins_count'], countFilter),
  ...term(['identities.connection', 'identities.provider', 'identities.user_id'], (field, match) =>
    relatedFilter('identities', `${field.slice('identities.'.length)}=`, match),
  ),
  ...term(['organization_id'], (_, match) => relatedFilter('memberships', '', match)),
]);

/**
 * A path within metadata. Its length is limited because each name in it costs the store a join, and it excludes names
 * that the store cannot address.
 */
const METADATA = /^(app|user)_metadata(\.[^."\\\p{Cc}]+){0,12}$/u;

type Metadata = 'app_metadata' | 'user_metadata';

/**
 * Whether some user has metadata beyond what the index holds (search-terms.ts). Such users are compared by their
 * records.
 */
export type HasMore = (object: Metadata) => boolean;

export const withMore = (object: Metadata): Filter => ({ index: 'search', equals: restTerm(object) });

/** @throws AuthError 400 */
export function userFilter(query: string, hasMore: HasMore): Filter {
  const userTerm = (field: string, match: Match): Filter => {
    if (METADATA.test(field)) return memberFilter(field, match, hasMore);
    // An unknown field matches nothing, as at the hosted service.
    // docs/understand/decisions/management-api.md#a-query-that-cannot-be-parsed-is-answered-400-a-field-that-no-user-has-matches-nobody
    return FIELDS.get(field)?.(field, match) ?? MATCHES_NOTHING;
  };
  return filterOf(parseQuery(query), (field, match) =>
    field === undefined ? { any: DEFAULTS.map((name) => userTerm(name, match)) } : userTerm(field, match),
  );
}

export function inConnection(name: string): Filter {
  return { of: 'identities', index: 'held', equals: `connection=${name}` };
}

/** Returns a text of domains in the stored spelling: each label of it that is written out. */
const inDomain = (text: string): string =>
  folded(text)
    .split('.')
    .map((label) => canonicalDomain(label) ?? label)
    .join('.');

/** Returns a part of an address in the stored spelling. @param isEnd whether the address ends with it. */
function inAddress(text: string, isEnd: boolean): string {
  const at = text.lastIndexOf('@') + 1;
  if (at === 0 && !isEnd) return folded(text);
  return folded(text.slice(0, at)) + inDomain(text.slice(at));
}

function emailFilter(field: string, match: Match): Filter {
  const email = match.kind === 'text' ? lookupEmail(match.text) : undefined;
  if (email === undefined) return textFilter(field, match, inAddress);
  return { index: 'search', equals: fieldTerm(field, email) };
}

function textFilter(
  field: string,
  match: Match,
  normalize: (text: string, isEnd: boolean) => string,
): Filter {
  const start = fieldTerm(field, '');
  if (match.kind === 'exists') return { index: 'search', prefix: start, isSingle: true };
  if (match.kind === 'text')
    return { index: 'search', equals: fieldTerm(field, normalize(match.text, true)) };
  if (match.kind === 'range') {
    if (field === 'email.domain') throw searchError(`Ranges are not supported on ${field}.`);
    return rangeOf(field, match, String);
  }
  return { ...indexWildcard(start, match, normalize), isSingle: true };
}

function indexWildcard(
  start: string,
  match: Extract<Match, { kind: 'pattern' }>,
  normalize: (text: string, isEnd: boolean) => string,
): Extract<IndexFilter, { prefix: string }> {
  const { prefix = '', contains, suffix } = wildcardOf(match) ?? {};
  return {
    index: 'search',
    prefix: start + normalize(prefix, false),
    ...(contains === undefined ? {} : { contains: normalize(contains, false) }),
    ...(suffix === undefined ? {} : { suffix: normalize(suffix, true) }),
  };
}

function booleanFilter(field: string, match: Match): Filter {
  if (match.kind === 'exists') return { index: 'search', prefix: fieldTerm(field, '') };
  if (match.kind !== 'text' || !['true', 'false'].includes(match.text)) {
    throw searchError(`${field} is true or false.`);
  }
  return { index: 'search', equals: fieldTerm(field, match.text) };
}

function plainFilter(field: string, match: Match): Filter {
  if (match.kind === 'exists') return { field, exists: true };
  if (match.kind === 'text') return { field, equals: match.text };
  return match.kind === 'range' ? rangeOf(field, match, String) : fieldWildcard(field, wildcardOf(match));
}

function countFilter(field: string, match: Match): Filter {
  if (match.kind === 'exists') return { field, exists: true };
  if (match.kind === 'text') return { field, equals: numberOf(match.text) };
  if (match.kind === 'range') return rangeOf(field, match, numberOf);
  throw searchError(`Wildcards are not supported on ${field}.`);
}

/** Returns the filter of users by a member of their identities or memberships. @param prefix names the member. */
function relatedFilter(of: 'identities' | 'memberships', prefix: string, match: Match): Filter {
  const isAny = match.kind === 'exists' || (match.kind === 'pattern' && wildcardOf(match) === undefined);
  if (isAny) return of === 'identities' ? { all: [] } : { of, index: 'held', equals: '' };
  if (match.kind !== 'text') throw searchError('Identities and organizations are searched by whole values.');
  // An empty value would match any.
  return match.text === '' ? MATCHES_NOTHING : { of, index: 'held', equals: `${prefix}${match.text}` };
}

function memberFilter(field: string, match: Match, hasMore: HasMore): Filter {
  const object = field.startsWith('app_metadata') ? 'app_metadata' : 'user_metadata';
  const orUnindexed = (indexed: Filter, unindexed: Filter): Filter =>
    hasMore(object) ? { any: [indexed, { all: [withMore(object), unindexed] }] } : indexed;
  if (match.kind === 'exists') return { field, exists: true };
  if (match.kind === 'text') {
    const values = valuesOf(match.text);
    return orUnindexed(memberEquals(field, values), { field, in: values });
  }
  if (object === 'user_metadata') throw searchError('user_metadata is searched by whole values.');
  if (match.kind === 'range') return memberRange(field, match);
  const wildcard = wildcardOf(match);
  if (wildcard === undefined) return { field, exists: true };
  return orUnindexed(indexWildcard(memberTerm(field, ''), match, String), fieldWildcard(field, wildcard));
}

/** Returns the values that a text may stand for: itself, and the number or boolean that is written so. */
function valuesOf(text: string): (string | number | boolean)[] {
  const number = text.trim() === '' || !Number.isFinite(Number(text)) ? [] : [Number(text)];
  return [text, ...number, ...(text === 'true' || text === 'false' ? [text === 'true'] : [])];
}

function memberEquals(field: string, values: readonly (string | number | boolean)[]): Filter {
  const terms = values.map((value): Filter => ({ index: 'search', equals: memberTerm(field, value) }));
  const [only] = terms;
  return terms.length === 1 && only !== undefined ? only : { any: terms };
}

function memberRange(field: string, range: Extract<Match, { kind: 'range' }>): Filter {
  const bounds = [range.from, range.to].filter((one) => one !== undefined);
  const areNumbers = bounds.every((one) => one.trim() !== '' && !Number.isNaN(Number(one)));
  const texts = rangeOf(field, range, String);
  return areNumbers && bounds.length > 0 ? { any: [rangeOf(field, range, Number), texts] } : texts;
}

/** Stored member for each field that users can be sorted by. */
const SORTED: ReadonlyMap<string, string> = new Map([
  ...['email', 'email_verified', 'username', 'phone_number', 'name', 'given_name', 'family_name'].map(
    (name): [string, string] => [name, name],
  ),
  ...['nickname', 'blocked', 'created_at', 'updated_at', 'last_login', 'last_ip', 'logins_count'].map(
    (name): [string, string] => [name, name],
  ),
  ['user_id', 'id'],
]);

/** @throws AuthError 400 */
export function userSort(field: string): string {
  const stored = SORTED.get(field);
  if (stored === undefined) throw searchError(`Users cannot be sorted by ${field}.`);
  return stored;
}
