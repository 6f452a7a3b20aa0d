// Maps an entry of a directory to the profile of a user.
import type { Entry } from 'ldapts';
import { ENTRY_IDS, type LdapOptions } from '../../../records/connections/ldap.ts';
import { type StableIdentity, upstreamFault } from '../redirect.ts';

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
export const BINARY = ['objectGUID', 'GUID'];

/**
 * The attributes that tell an entry from all others that the directory ever had, and when it was created. Most are
 * operational: a directory returns them only if they are requested by name (RFC 4512 §3.4, RFC 4530 §2).
 */
export const IDENTIFYING = [...ENTRY_IDS, 'createTimestamp', 'whenCreated'];

export interface DirectoryEntry {
  dn: string;
  /** From which a new user's id is made. */
  id: string;
  /** Absent if the directory gives its entries no id of their own. */
  stable?: StableIdentity;
  attributes: Entry;
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
/** The id of 389 Directory Server. */
const NS_UNIQUE_ID = /^[0-9a-f]{8}(-[0-9a-f]{8}){3}$/i;

/**
 * Returns an entry with its identifiers: the `objectGUID` of Active Directory or the `entryUUID` (RFC 4530), or the one of
 * the option `LDAP_UNIQUE_ID`, which no other entry ever gets. Without one, users are identified by the `uid`, or else the DN. Two entries may have the same cn.
 * @throws AuthError by `upstreamFault` for a `uid` in the form of such an id, which could be another entry's.
 */
export function entryOf(attributes: Entry, options: Pick<LdapOptions, 'LDAP_UNIQUE_ID'>): DirectoryEntry {
  const { dn } = attributes;
  const id = entryIdOf(attributes, options);
  const name = firstValue(attributes, 'uid') ?? dn;
  if (id !== undefined) return { dn, id, stable: stableOf(attributes, { id, name }), attributes };
  if (UUID.test(name) || NS_UNIQUE_ID.test(name))
    throw upstreamFault('access_denied', 'The directory gave no user id that can be used.');
  return { dn, id: name, attributes };
}

/** Returns the id that a directory gave to an entry, and gives to no other. */
export function entryIdOf(
  attributes: Entry,
  { LDAP_UNIQUE_ID: chosen }: Pick<LdapOptions, 'LDAP_UNIQUE_ID'>,
): string | undefined {
  const names = chosen === undefined ? (['objectGUID', 'entryUUID'] as const) : [chosen];
  return names.map((name) => readId[name](attributes)).find((id) => id !== undefined);
}

const binaryId = (name: string) => (attributes: Entry) => {
  const value = attributes[name];
  return Buffer.isBuffer(value) && value.length === 16 ? guidOf(value) : undefined;
};
const textId = (name: string, form: RegExp) => (attributes: Entry) => {
  const value = firstValue(attributes, name);
  return value !== undefined && form.test(value) ? value.toLowerCase() : undefined;
};

const readId: Readonly<Record<(typeof ENTRY_IDS)[number], (attributes: Entry) => string | undefined>> = {
  objectGUID: binaryId('objectGUID'),
  entryUUID: textId('entryUUID', UUID),
  nsUniqueId: textId('nsUniqueId', NS_UNIQUE_ID),
  GUID: binaryId('GUID'),
};

/** Returns an entry by its own id. Users from before the directory showed it have the name as theirs: the `uid`, or else the DN. */
function stableOf(attributes: Entry, { id, name }: { id: string; name: string }): StableIdentity {
  const createdAt = createdAtOf(attributes);
  const since = createdAt === undefined ? '' : `, created ${new Date(createdAt).toISOString()}`;
  return {
    id,
    name,
    description: `${attributes.dn} (${id}${since})`,
    // An entry that was created after the user's first login has replaced the one that logged in then.
    isSame: ({ attributes: stored }, { created_at }) =>
      typeof stored?.dn === 'string' &&
      stored.dn.toLowerCase() === attributes.dn.toLowerCase() &&
      createdAt !== undefined &&
      createdAt <= Date.parse(created_at),
  };
}

const GENERALIZED_TIME =
  /^(\d{4})(\d\d)(\d\d)(\d\d)(?:(\d\d)(\d\d)?)?(?:[.,]\d{1,9})?(?:Z|([+-])(\d\d)(\d\d)?)$/;

/** Returns when an entry was created, epoch milliseconds (RFC 4517 §3.3.13); undefined if the directory does not say. */
function createdAtOf(attributes: Entry): number | undefined {
  const text = firstValue(attributes, 'createTimestamp') ?? firstValue(attributes, 'whenCreated') ?? '';
  const [all, year, month, day, hour, minute = '00', second = '00', sign, ...offset] =
    GENERALIZED_TIME.exec(text) ?? [];
  if (all === undefined) return undefined;
  const zone = sign === undefined ? 'Z' : `${sign}${offset[0]}:${offset[1] ?? '00'}`;
  const at = Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}${zone}`);
  return Number.isNaN(at) ? undefined : at;
}

export function attributesOf(options: LdapOptions): string[] {
  const attributes = [...Object.values(FIELDS), ...Object.values(options.fieldsMap)].flat();
  return [...new Set([...IDENTIFYING, 'uid', ...attributes])];
}

/** @param groups names of the user's groups; undefined if they were not requested. */
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
