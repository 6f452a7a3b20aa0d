// Maps an entry of a directory to the profile of a user.
import type { Entry } from 'ldapts';
import type { LdapOptions } from '../../records/ldap.ts';

/** For each member of the profile, the attributes it is read from: the first one that the entry has. */
const FIELDS: Readonly<Record<string, readonly string[]>> = {
  name: ['displayName', 'cn'],
  family_name: ['sn'],
  given_name: ['givenName'],
  nickname: ['sAMAccountName', 'uid', 'cn'],
  username: ['sAMAccountName', 'uid'],
  email: ['mail'],
  phone_number: ['telephoneNumber'],
  department: ['department'],
  company: ['company'],
  upn: ['userPrincipalName'],
};

/** Attributes with binary values. */
export const BINARY = ['objectGUID'];

/** Returns the attributes to request. */
export function attributesOf(options: LdapOptions): string[] {
  const attributes = [...Object.values(FIELDS), ...Object.values(options.fieldsMap)].flat();
  return [...new Set(['objectGUID', 'uid', ...attributes])];
}

/** Returns the stable id of an entry: its GUID, else its uid, else its DN. Two entries may have the same cn. */
export function idOf(entry: Entry): string {
  const guid = entry.objectGUID;
  return Buffer.isBuffer(guid) && guid.length === 16 ? guidOf(guid) : (firstValue(entry, 'uid') ?? entry.dn);
}

/** Returns the profile of an entry. @param groups names of the user's groups; undefined if they were not requested. */
export function profileOf(
  entry: Entry,
  options: LdapOptions,
  groups: readonly string[] | undefined,
): Record<string, unknown> {
  const fields = { ...FIELDS, ...options.fieldsMap };
  const values = Object.entries(fields).flatMap(([member, names]) => {
    const value = [names].flat().map((name) => firstValue(entry, name));
    const found = value.find((one) => one !== undefined);
    return found === undefined ? [] : [[member, found] as const];
  });
  const isTrusted = options.should_trust_email_verified_connection === 'always_set_emails_as_verified';
  return {
    ...Object.fromEntries(values),
    email_verified: isTrusted,
    dn: entry.dn,
    ...(groups !== undefined && { groups }),
  };
}

/** Returns the first value of an attribute if it is a non-empty string. Names are case-insensitive (RFC 4512 §2.5). */
export function firstValue(entry: Entry, name: string): string | undefined {
  const key = Object.keys(entry).find((one) => one.toLowerCase() === name.toLowerCase());
  const value = key === undefined ? undefined : [entry[key]].flat()[0];
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** Formats a GUID as Active Directory does: its first three parts are little-endian (MS-DTYP §2.3.4.2). */
function guidOf(bytes: Buffer): string {
  const part = (from: number, to: number) => bytes.subarray(from, to);
  const swapped = (from: number, to: number) => Buffer.from(part(from, to)).reverse();
  const parts = [swapped(0, 4), swapped(4, 6), swapped(6, 8), part(8, 10), part(10, 16)];
  return parts.map((one) => one.toString('hex')).join('-');
}
