// Masks or hashes personal data in events before they are sent.
import { createHmac } from 'node:crypto';
import type { PiiConfig } from '../../../records/log-streams.ts';

type Field = PiiConfig['log_fields'][number];

/** The names of the members that hold each field, at any depth of an event. */
const MEMBERS: Readonly<Record<Field, readonly string[]>> = {
  first_name: ['first_name', 'given_name', 'name', 'nickname'],
  last_name: ['last_name', 'family_name', 'name'],
  username: ['username', 'preferred_username', 'nickname'],
  email: ['email'],
  phone: ['phone', 'phone_number'],
  address: ['address', 'formatted', 'street_address', 'locality', 'region', 'postal_code'],
};

const MASK = '*****';
/** Splits a text, path or identifier into words that may be an address or a number. */
const WORD = /[^\s"'<>()[\]{},;:=&?/\\|]+/g;
const EMAIL = /^[^@]+@[^@]+$|^(?=[^@]+$).+%40./i;
const PHONE = /^(?:\+|%2B)\d{6,15}$/i;
const DIGITS = /^\+?\d{6,15}$/;

/**
 * Returns a function that masks or hashes the given fields of an event. E-mail addresses and phone numbers are found
 * in all texts, the other fields only in members of their names.
 * @param key of the hashes. Without a key, a receiver could hash known addresses and compare.
 */
export function personalDataRemover({ log_fields, method }: PiiConfig, key: Buffer): <T>(event: T) => T {
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
  const maskValue = (value: unknown, isWhole: boolean): unknown => {
    if (typeof value === 'string')
      return isWhole
        ? replace(value)
        : value.replace(WORD, (word) => (isPersonalWord(word) ? replace(word) : word));
    if (typeof value === 'number' && isWhole) return replace(String(value));
    if (Array.isArray(value)) return value.map((one) => maskValue(one, isWhole));
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(
      Object.entries(value).map(([name, one]) => [name, maskValue(one, isWhole || isPersonal(name, one))]),
    );
  };
  return <T>(event: T) => maskValue(event, false) as T;
}

/** Returns the field that a login identifier is: e-mail address, phone number or username. */
function kindOf(identifier: string): Field {
  if (identifier.includes('@')) return 'email';
  return DIGITS.test(identifier) ? 'phone' : 'username';
}
