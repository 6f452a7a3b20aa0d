// What is personal in an event, masked or hashed before it leaves us.
import { createHmac } from 'node:crypto';
import type { PiiConfig } from '../../records/log-streams.ts';

type Field = PiiConfig['log_fields'][number];

/** The members that hold a field, wherever in an event they are. */
const MEMBERS: Readonly<Record<Field, readonly string[]>> = {
  first_name: ['first_name', 'given_name', 'name', 'nickname'],
  last_name: ['last_name', 'family_name', 'name'],
  username: ['username', 'preferred_username', 'nickname'],
  email: ['email'],
  phone: ['phone', 'phone_number'],
  address: ['address', 'formatted', 'street_address', 'locality', 'region', 'postal_code'],
};

const MASK = '*****';
/** What addresses and numbers are separated by in a sentence, a path or an identifier. */
const WORD = /[^\s"'<>()[\]{},;:=&?/\\|]+/g;
const EMAIL = /^[^@]+(?:@|%40)[^@]+$/i;
const PHONE = /^(?:\+|%2B)\d{6,15}$/i;
const DIGITS = /^\+?\d{6,15}$/;

/**
 * What takes the fields out of an event. E-mail addresses and phone numbers are found in every text, the others in members
 * of their names.
 * @param key of hashes: without it whoever reads them could hash the addresses that they know.
 */
export function withoutPersonal({ log_fields, method }: PiiConfig, key: Buffer): <T>(event: T) => T {
  const fields = new Set(log_fields);
  const members = new Set(log_fields.flatMap((field) => MEMBERS[field]));
  const replace = (value: string): string =>
    method === 'hash'
      ? createHmac('sha256', key).update(value.trim().toLowerCase()).digest('hex').slice(0, 32)
      : MASK;
  const isPersonalWord = (word: string) =>
    (fields.has('email') && EMAIL.test(word)) || (fields.has('phone') && PHONE.test(word));
  const isPersonal = (member: string, value: unknown) =>
    member === 'user_name' ? typeof value === 'string' && fields.has(kindOf(value)) : members.has(member);
  const walk = (value: unknown, isWhole: boolean): unknown => {
    if (typeof value === 'string')
      return isWhole
        ? replace(value)
        : value.replace(WORD, (word) => (isPersonalWord(word) ? replace(word) : word));
    if (typeof value === 'number' && isWhole) return replace(String(value));
    if (Array.isArray(value)) return value.map((one) => walk(one, isWhole));
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(
      Object.entries(value).map(([name, one]) => [name, walk(one, isWhole || isPersonal(name, one))]),
    );
  };
  return <T>(event: T) => walk(event, false) as T;
}

/** What somebody has typed to say who they are. */
function kindOf(identifier: string): Field {
  if (identifier.includes('@')) return 'email';
  return DIGITS.test(identifier) ? 'phone' : 'username';
}
