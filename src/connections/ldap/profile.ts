// An entry of a directory as the profile of a user.
import type { Entry } from 'ldapts';
import type { LdapOptions } from '../../records/ldap.ts';

/** Attributes by the member of the profile that they set, the first that an entry has. */
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

/** Attributes that are bytes. */
export const BINARY = ['objectGUID'];

/** The attributes to ask for. */
export function attributesOf(options: LdapOptions): string[] {
  const named = [...Object.values(FIELDS), ...Object.values(options.fieldsMap)].flat();
  return [...new Set(['objectGUID', 'uid', ...named])];
}

/**
 * What a directory calls a user, for good: the GUID, else the uid, else the DN. Not the cn: two entries may have the same.
 */
export function idOf(entry: Entry): string {
  const guid = entry.objectGUID;
  return Buffer.isBuffer(guid) && guid.length === 16 ? guidOf(guid) : (first(entry, 'uid') ?? entry.dn);
}

/** The profile. @param groups names of the groups that the user is in; undefined where they are not asked for. */
export function profileOf(
  entry: Entry,
  options: LdapOptions,
  groups: readonly string[] | undefined,
): Record<string, unknown> {
  const fields = { ...FIELDS, ...options.fieldsMap };
  const values = Object.entries(fields).flatMap(([member, names]) => {
    const value = [names].flat().map((name) => first(entry, name));
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

/** The first value of an attribute; names are compared without case (RFC 4512 §2.5). */
export function first(entry: Entry, name: string): string | undefined {
  const key = Object.keys(entry).find((one) => one.toLowerCase() === name.toLowerCase());
  const value = key === undefined ? undefined : [entry[key]].flat()[0];
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** A GUID as Active Directory writes it: its first three parts are little-endian (MS-DTYP §2.3.4.2). */
function guidOf(bytes: Buffer): string {
  const part = (from: number, to: number) => bytes.subarray(from, to);
  const swapped = (from: number, to: number) => Buffer.from(part(from, to)).reverse();
  const parts = [swapped(0, 4), swapped(4, 6), swapped(6, 8), part(8, 10), part(10, 16)];
  return parts.map((one) => one.toString('hex')).join('-');
}
