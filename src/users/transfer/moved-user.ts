// Reads one user of a tenant that moves here: as the hosted service's export of users and its Management API show them, with
// what other files say about them, and makes the records that the user has here.
import { z } from 'zod';
import { normalizeEmail, normalizePhone } from '../../records/base/email.ts';
import type { Connection } from '../../records/collections.ts';
import { DATABASE, strategyRecord } from '../../records/connections/connections.ts';
import { readsAsAddress, uniqueIn } from '../../records/connections/database-attributes.ts';
import { type AddressKind, type IdentityRecord, identityId } from '../../records/connections/identities.ts';
import { isDeceptive } from '../../records/connections/usernames.ts';
import { customDatabase, databaseOptions } from '../../records/database-options.ts';
import { type MembershipRecord, membershipId } from '../../records/users/organizations.ts';
import type { PermissionRecord } from '../../records/users/roles.ts';
import { ALL_SECOND_FACTORS } from '../../records/users/second-factors.ts';
import {
  type CredentialRecord,
  IDENTITY_MEMBERS,
  INTERNAL_MEMBERS,
  PROFILE_CLAIMS,
  SERVER_MEMBERS,
  type UserRecord,
} from '../../records/users/users.ts';
import { metadataFault } from '../changes.ts';
import { emptyCredential } from '../credentials.ts';
import { type ImportedFactor, importedFactors } from '../imported-factors.ts';
import { checkBcrypt, checkHash } from '../imported-hashes/imported-hashes.ts';
import { type EntryError, errorOf } from './entry-error.ts';

/** What of this tenant the users of another are moved to. Roles and organizations are found by id and by name. */
export interface MoveTarget {
  /** By name. */
  connections: ReadonlyMap<string, Connection>;
  /** The connection of database users of whom the export does not say it. */
  database?: string | undefined;
  roles: ReadonlyMap<string, { id: string; owner_id?: string | undefined }>;
  organizations: ReadonlyMap<string, { id: string }>;
}

/** What an import has about one user, each as its own file has it. */
export interface MovedLine {
  /** A user of the export. Without one, the line says what a user gets who is here. */
  user?: unknown;
  /** The user's id, of a line without a user. */
  id?: unknown;
  /** Lines of the file of password hashes, or users of import files, of the user's identities. */
  secrets?: readonly unknown[] | undefined;
  /** Roles, permissions, and memberships in organizations. */
  access?: readonly unknown[] | undefined;
}

/** A user with all records that they have here. */
export interface MovedUser {
  user: UserRecord;
  /** Whether the export says when the user was changed last. */
  isDated: boolean;
  /** The first is the one that the user was created with. */
  identities: readonly IdentityRecord[];
  /** With a password, or without one for identities that are linked. */
  credentials: readonly CredentialRecord[];
  /** When the passwords were set last, ISO 8601, by the id of the credential; those of which it is known. */
  passwordsSetAt: ReadonlyMap<string, string>;
  factors: readonly ImportedFactor[];
  /** Whether the user had a second factor that no file has. */
  lacksFactor: boolean;
  memberships: readonly MembershipRecord[];
  refusedAccess: readonly { value: unknown; error: EntryError }[];
}

/** The most characters, as JSON, of what the profile of an identity has beside the members that are known here. */
const MAX_ATTRIBUTES_LENGTH = 65_536;
/** The most characters of a profile's member. */
const MAX_MEMBER_LENGTH = 2048;
const MAX_ID_LENGTH = 1024;
/** The most identities of a user; see linking.ts. */
const MAX_IDENTITIES = 50;

const id = z
  .string()
  .min(1)
  .max(MAX_ID_LENGTH)
  .refine((text) => !/\p{Cc}/u.test(text) && text.isWellFormed(), 'has characters that no id has');

/** A date as exports write it: a text, epoch milliseconds, or as `mongoexport` does. */
const date = z
  .union([
    z.string(),
    z.number(),
    z.object({ $date: z.union([z.string(), z.number()]) }).transform(({ $date }) => $date),
  ])
  .transform((value) => new Date(value))
  .refine((value) => !Number.isNaN(value.getTime()), 'is no date')
  .transform((value) => value.toISOString());

const metadata = z.record(z.string(), z.unknown());
/** Exports leave out what is not set, or have null for it. */
const optional = <T extends z.ZodType>(type: T) => type.nullish().transform((value) => value ?? undefined);

const identitySchema = z.looseObject({
  connection: optional(z.string()),
  provider: optional(z.string()),
  // The ids of some providers are numbers.
  user_id: z.union([id, z.number().transform(String)]),
  isSocial: optional(z.boolean()),
  profileData: optional(z.record(z.string(), z.unknown())),
  access_token: optional(z.string()),
  refresh_token: optional(z.string()),
});

const userSchema = z.looseObject({
  user_id: id,
  email: optional(z.string()),
  email_verified: optional(z.boolean()),
  username: optional(z.string()),
  phone_number: optional(z.string()),
  phone_verified: optional(z.boolean()),
  connection: optional(z.string()),
  identities: optional(z.array(identitySchema).max(MAX_IDENTITIES)),
  user_metadata: optional(metadata),
  app_metadata: optional(metadata),
  blocked: optional(z.boolean()),
  multifactor: optional(z.array(z.string())),
  created_at: optional(date),
  updated_at: optional(date),
  last_login: optional(date),
  last_ip: optional(z.string().max(64)),
  logins_count: optional(z.number().int().min(0)),
  last_password_reset: optional(date),
});

const identifierSchema = z.looseObject({
  type: z.string(),
  value: z.string(),
  verified: optional(z.boolean()),
});

/** A line of the file of password hashes that the hosted service's support sends, or a user of an import file. */
const secretSchema = z
  .looseObject({
    _id: optional(z.looseObject({ $oid: z.string() })),
    alt_id: optional(z.string()),
    user_id: optional(z.string()),
    connection: optional(z.string()),
    passwordHash: optional(z.string()),
    password_hash: optional(z.string()),
    custom_password_hash: z.unknown().optional(),
    password_set_date: optional(date),
    mfa_factors: optional(importedFactors),
    email: optional(z.string()),
    email_verified: optional(z.boolean()),
    username: optional(z.string()),
    phone_number: optional(z.string()),
    phone_verified: optional(z.boolean()),
    identifiers: optional(z.array(identifierSchema)),
  })
  .transform((line) => ({ ...line, id: idOfSecret(line) }));
type Secret = z.output<typeof secretSchema>;

/**
 * Returns the id of the user whom a line with a password is about; undefined if it names none. Only users of databases have
 * passwords, and their ids may lack the strategy.
 */
export function idOfSecret({
  alt_id,
  _id,
  user_id,
}: {
  alt_id?: unknown;
  _id?: unknown;
  user_id?: unknown;
}): string | undefined {
  const named = alt_id ?? (_id as { $oid?: unknown } | null | undefined)?.$oid ?? user_id;
  if (typeof named !== 'string' || named === '') return undefined;
  const [prefix = '', ...rest] = named.split('|');
  return rest.length > 0 && strategyRecord(prefix) !== undefined ? named : `${DATABASE}|${named}`;
}

/** Returns a line with a password as a user of an export, for a user of whom nothing else is known. */
export function userOfSecret(value: unknown): Record<string, unknown> {
  const { data } = secretSchema.safeParse(value);
  if (data === undefined) return {};
  const { email, username, phone, email_verified, phone_verified } = addressesOfSecret(data);
  return {
    user_id: data.id,
    ...(data.connection !== undefined && { connection: data.connection }),
    ...(email !== undefined && { email, email_verified }),
    ...(username !== undefined && { username }),
    ...(phone !== undefined && { phone_number: phone, phone_verified }),
    ...profileOfSecret(data),
  };
}

/** The members of a user in an import file that describe the person; the file of password hashes has none of them. */
function profileOfSecret(data: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const names = [...PROFILE_CLAIMS, 'address', 'blocked', 'user_metadata', 'app_metadata'];
  return Object.fromEntries(names.flatMap((name) => (data[name] == null ? [] : [[name, data[name]]])));
}

function addressesOfSecret({
  email,
  username,
  phone_number,
  email_verified,
  phone_verified,
  identifiers,
}: Secret) {
  const by = (...types: string[]) => identifiers?.find(({ type }) => types.includes(type));
  const phone = by('phone', 'phone_number');
  return {
    email: email ?? by('email')?.value,
    email_verified: email_verified ?? by('email')?.verified ?? false,
    username: username ?? by('username')?.value,
    phone: phone_number ?? phone?.value,
    phone_verified: phone_verified ?? phone?.verified ?? false,
  };
}

const accessSchema = z.looseObject({
  organization: optional(z.string()),
  roles: optional(
    z.array(
      z.union([
        z.string(),
        z.looseObject({ id: z.string() }).transform((role) => role.id),
        z.looseObject({ name: z.string() }).transform((role) => role.name),
      ]),
    ),
  ),
  permissions: optional(
    z.array(
      z
        .looseObject({ resource_server_identifier: z.string().min(1), permission_name: z.string().min(1) })
        .transform(({ resource_server_identifier, permission_name }) => ({
          resource_server_identifier,
          permission_name,
        })),
    ),
  ),
});

class Refusal extends Error {
  readonly error: EntryError;

  constructor(error: EntryError) {
    super(error.message);
    this.error = error;
  }
}

const refuse = (path: string, message: string, code = 'NOT_PASSED'): never => {
  throw new Refusal({ code, message, path });
};

/** Reads a user; `now` is their `created_at` where the export has none. */
export function readMoved(
  line: MovedLine,
  target: MoveTarget,
  now: string,
): { moved: MovedUser } | { errors: EntryError[] } {
  const parsed = userSchema.safeParse(line.user, { reportInput: true });
  if (!parsed.success) return { errors: parsed.error.issues.map(errorOf) };
  const secrets: Secret[] = [];
  for (const one of line.secrets ?? []) {
    const secret = secretSchema.safeParse(one, { reportInput: true });
    if (!secret.success) return { errors: secret.error.issues.map(errorOf) };
    secrets.push(secret.data);
  }
  try {
    return { moved: movedOf(parsed.data, secrets, line.access ?? [], target, now) };
  } catch (thrown) {
    if (thrown instanceof Refusal) return { errors: [thrown.error] };
    throw thrown;
  }
}

type ReadUser = z.output<typeof userSchema>;
type ReadIdentity = z.output<typeof identitySchema>;

function movedOf(
  read: ReadUser,
  secrets: readonly Secret[],
  access: readonly unknown[],
  target: MoveTarget,
  now: string,
): MovedUser {
  const userId = read.user_id;
  const [primary, ...linked] = identitiesOf(read, target);
  const first = identityOf({ userId, place: primary, profile: profileIn(read), path: '' });
  const others = linked.map((place) =>
    identityOf({
      userId,
      place,
      profile: { ...fromSecret(place, secrets), ...place.read.profileData },
      path: `identities.${place.index}`,
    }),
  );
  const created_at = read.created_at ?? now;
  const user: UserRecord = {
    email_verified: read.email_verified ?? false,
    ...first.members,
    id: userId,
    user_metadata: read.user_metadata ?? {},
    app_metadata: read.app_metadata ?? {},
    ...(read.blocked === true && { blocked: true }),
    ...multifactorOf(read),
    created_at,
    updated_at: read.updated_at ?? created_at,
    ...(read.last_login !== undefined && { last_login: read.last_login }),
    ...(read.last_ip !== undefined && { last_ip: read.last_ip }),
    logins_count: read.logins_count ?? 0,
  };
  const fault = metadataFault(user);
  if (fault !== undefined) refuse('', fault.message);
  const { credentials, passwordsSetAt } = credentialsOf([primary, ...linked], secrets, target);
  const reset = [read.last_password_reset, passwordsSetAt.get(userId)].filter((at) => at !== undefined);
  const factors = secrets.flatMap(({ mfa_factors = [], id: of }) => (of === userId ? mfa_factors : []));
  const { roles, permissions, memberships, refused } = accessOf(userId, access, target);
  return {
    user: {
      ...user,
      // Every password is set once; only a later one is a reset.
      ...(reset.some((at) => at > created_at) && { last_password_reset: reset.sort().at(-1) as string }),
      ...(roles.length > 0 && { roles }),
      ...(permissions.length > 0 && { permissions }),
    },
    isDated: read.updated_at !== undefined,
    identities: [first.identity, ...others.map(({ identity }) => identity)],
    credentials,
    passwordsSetAt,
    factors,
    lacksFactor: (read.multifactor ?? []).length > 0 && factors.length === 0,
    memberships,
    refusedAccess: refused,
  };
}

/** An identity of the export, and its connection here. */
interface PlacedIdentity {
  read: ReadIdentity;
  index: number;
  connection: Connection;
}

/** Returns the identities, the one first that the user was created with. */
function identitiesOf(read: ReadUser, target: MoveTarget): [PlacedIdentity, ...PlacedIdentity[]] {
  const { user_id, identities = [] } = read;
  const bar = user_id.indexOf('|');
  const provider = user_id.slice(0, bar);
  if (bar < 1 || bar === user_id.length - 1) refuse('user_id', 'is no strategy, bar and id');
  // An export of chosen members may have none, or only the name of the connection.
  const ownId = user_id.slice(bar + 1);
  const own = identitySchema.parse({ user_id: ownId, provider, connection: read.connection });
  const all = identities.length === 0 ? [own] : identities;
  const placed = all.map((one, index): PlacedIdentity => {
    const named = one.provider ?? (one.user_id === ownId ? provider : undefined);
    return { read: one, index, connection: connectionOf({ ...one, provider: named }, index, target) };
  });
  const primary = placed.find(
    ({ read: one, connection }) => `${connection.strategy}|${one.user_id}` === user_id,
  );
  if (primary === undefined)
    return refuse('identities', `none of them is ${user_id}, which the user was created with`);
  return [primary, ...placed.filter((one) => one !== primary)];
}

function connectionOf(
  { connection: name, provider }: Pick<ReadIdentity, 'connection' | 'provider'>,
  index: number,
  { connections, database }: MoveTarget,
): Connection {
  const path = `identities.${index}.connection`;
  if (name !== undefined) {
    const connection = connections.get(name) ?? refuse(path, `there is no connection ${name} here`);
    if (provider !== undefined && connection.strategy !== provider)
      refuse(path, `the connection ${name} is ${connection.strategy} here, and not ${provider}`);
    return connection;
  }
  const same = [...connections.values()].filter(({ strategy }) => strategy === provider);
  const [only, ...more] =
    provider === DATABASE && database !== undefined ? same.filter((one) => one.name === database) : same;
  if (only === undefined) return refuse(path, `there is no connection of the strategy ${provider} here`);
  if (more.length > 0) refuse(path, `several connections are ${provider} here: the export must say which`);
  return only;
}

const isDatabase = ({ connection }: PlacedIdentity) => connection.strategy === DATABASE;

const homeOf = ({ read, connection }: PlacedIdentity) => `${connection.strategy}|${read.user_id}`;

/** What the file of password hashes has about a linked identity, whose profile exports may leave out. */
function fromSecret(place: PlacedIdentity, secrets: readonly Secret[]): Record<string, unknown> {
  const secret = isDatabase(place) ? secretOf(place, secrets) : undefined;
  if (secret === undefined) return {};
  const { email, email_verified, username, phone, phone_verified } = addressesOfSecret(secret);
  return {
    ...(email !== undefined && { email, email_verified }),
    ...(username !== undefined && { username }),
    ...(phone !== undefined && { phone_number: phone, phone_verified }),
  };
}

/** Returns the line with the password of an identity; there may be others with its second factors alone. */
function secretOf({ read, connection }: PlacedIdentity, secrets: readonly Secret[]): Secret | undefined {
  const same = secrets.filter(
    (one) =>
      one.id === `${DATABASE}|${read.user_id}` && (one.connection ?? connection.name) === connection.name,
  );
  return same.find((one) => hasHash(one)) ?? same[0];
}

const hasHash = ({ passwordHash, password_hash, custom_password_hash }: Secret) =>
  (passwordHash ?? password_hash ?? custom_password_hash ?? '') !== '';

/** Members of an exported user that are no part of the profile. */
const NO_PROFILE: ReadonlySet<string> = new Set([
  ...SERVER_MEMBERS,
  ...'_id id user_id identities user_metadata app_metadata blocked multifactor multifactor_last_modified'.split(
    ' ',
  ),
  ...'connection connection_id tenant clientID client_id global_client_id roles permissions refused'.split(
    ' ',
  ),
  ...'organizations guardian_authenticators guardian_enrollments password_hash passwordHash'.split(' '),
  ...INTERNAL_MEMBERS,
  ...'custom_password_hash mfa_factors password sub'.split(' '),
  ...'constructor prototype'.split(' '),
]);

const profileIn = (read: ReadUser): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(read).filter(([name, value]) => !NO_PROFILE.has(name) && value !== undefined),
  );

/**
 * Returns an identity, and the members of a user's record that its profile has.
 * @param path of the identity in the export, for errors; empty for the user's own profile.
 */
function identityOf({
  userId,
  place,
  profile,
  path,
}: {
  userId: string;
  place: PlacedIdentity;
  profile: Readonly<Record<string, unknown>>;
  path: string;
}): { identity: IdentityRecord; members: Partial<UserRecord> } {
  const { read, connection } = place;
  const { name, strategy } = connection;
  const kinds = uniqueKindsOf(connection);
  const at = (member: string) => (path === '' ? member : `${path}.profileData.${member}`);
  const addresses = addressesIn(profile, { kinds, connection, at });
  const { members, attributes } = memberOf(profile);
  if (JSON.stringify(attributes).length > MAX_ATTRIBUTES_LENGTH)
    refuse(path, `its attributes have more than ${MAX_ATTRIBUTES_LENGTH} characters`);
  if (kinds.length > 0 && path === '' && Object.keys(addresses).length === 0)
    refuse('email', 'One of email, username, phone_number is required', 'ANY_OF_MISSING');
  const all = { ...members, ...addresses };
  const isLinked = `${strategy}|${read.user_id}` !== userId;
  const found = strategy === DATABASE || kinds.length > 0 ? addresses : foundBy(addresses);
  const { access_token, refresh_token } = read;
  return {
    members: all,
    identity: {
      id: identityId(name, read.user_id),
      user_id: userId,
      connection: name,
      provider: strategy,
      upstream_id: read.user_id,
      isSocial: read.isSocial ?? false,
      ...found,
      ...(isLinked && { profile: all }),
      ...(Object.keys(attributes).length > 0 && { attributes }),
      ...((access_token ?? refresh_token) !== undefined && {
        upstream: {
          ...(access_token !== undefined && { access_token }),
          ...(refresh_token !== undefined && { refresh_token }),
        },
      }),
      unique: kinds,
    },
  };
}

/** Of a provider's user, only the e-mail address is one that users are searched by. */
const foundBy = ({ email }: Partial<Record<AddressKind, string>>) => (email === undefined ? {} : { email });

/** Returns the kinds of identifiers that are unique in a connection. */
function uniqueKindsOf(connection: Connection): AddressKind[] {
  if (connection.strategy === DATABASE) return uniqueIn(databaseOptions(connection));
  return [...(strategyRecord(connection.strategy)?.unique ?? [])];
}

function addressesIn(
  profile: Readonly<Record<string, unknown>>,
  {
    kinds,
    connection,
    at,
  }: { kinds: readonly AddressKind[]; connection: Connection; at(name: string): string },
): Partial<Record<AddressKind, string>> {
  const text = (name: AddressKind) => {
    const value = profile[name];
    return typeof value === 'string' && value !== '' ? value : undefined;
  };
  const [email, username, phone] = [text('email'), text('username'), text('phone_number')];
  const addresses: Partial<Record<AddressKind, string>> = {};
  if (email !== undefined)
    addresses.email = normalizeEmail(email) ?? refuse(at('email'), `${email} is no e-mail address`, 'FORMAT');
  if (phone !== undefined)
    addresses.phone_number = kinds.includes('phone_number')
      ? (normalizePhone(phone) ?? refuse(at('phone_number'), `${phone} is no phone number`, 'FORMAT'))
      : phone;
  if (username !== undefined) {
    const isName = connection.strategy === DATABASE;
    addresses.username = isName ? username.trim().toLowerCase() : username;
    // A login with an address would find the user who has it for a name.
    if (isName && readsAsAddress(databaseOptions(connection), username))
      refuse(at('username'), 'must be no e-mail address or phone number that others log in with');
    if (isName && isDeceptive(username)) refuse(at('username'), 'must have no invisible letters');
  }
  return addresses;
}

const KNOWN: ReadonlySet<string> = new Set(IDENTITY_MEMBERS);
const ADDRESS_NAMES: ReadonlySet<string> = new Set(['email', 'username', 'phone_number']);

/**
 * Splits a profile into the members that a record has here and all others. A member in another form than ours, such as a
 * language that is an object, is one of the others.
 */
function memberOf(profile: Readonly<Record<string, unknown>>): {
  members: Partial<UserRecord>;
  attributes: Record<string, unknown>;
} {
  const members: Record<string, unknown> = {};
  const attributes: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(profile)) {
    if (value === null || value === '' || ADDRESS_NAMES.has(name)) continue;
    if (name === 'email_verified' || name === 'phone_verified') members[name] = value === true;
    else if (name === 'address' && isTexts(value)) members.address = value;
    else if (KNOWN.has(name) && typeof value === 'string' && value.length <= MAX_MEMBER_LENGTH)
      members[name] = value;
    else attributes[name] = value;
  }
  return { members: members as Partial<UserRecord>, attributes };
}

const isTexts = (value: unknown) =>
  typeof value === 'object' &&
  value !== null &&
  Object.values(value).every((part) => typeof part === 'string' && part.length <= MAX_MEMBER_LENGTH);

/** The providers of second factors that a user must pass. `guardian` says only that the user had some. */
function multifactorOf({ multifactor = [] }: ReadUser): Pick<UserRecord, 'multifactor'> {
  const known = multifactor.filter((name) => ALL_SECOND_FACTORS.some(({ provider }) => provider === name));
  return known.length === 0 ? {} : { multifactor: known };
}

function credentialsOf(
  identities: readonly PlacedIdentity[],
  secrets: readonly Secret[],
  { connections }: MoveTarget,
): Pick<MovedUser, 'credentials' | 'passwordsSetAt'> {
  const credentials: CredentialRecord[] = [];
  const passwordsSetAt = new Map<string, string>();
  for (const [index, place] of identities.entries()) {
    if (!isDatabase(place)) continue;
    const home = homeOf(place);
    const secret = secretOf(place, secrets);
    const isElsewhere =
      customDatabase(connections.get(place.connection.name) ?? place.connection) === 'elsewhere';
    const hash = secret === undefined || isElsewhere ? undefined : hashOf(secret);
    if (secret?.password_set_date !== undefined) passwordsSetAt.set(home, secret.password_set_date);
    if (hash !== undefined) credentials.push({ id: home, passwordHash: hash, history: [] });
    // No other user may get the id of a linked identity, and with it the password.
    else if (index > 0) credentials.push(emptyCredential(home));
  }
  return { credentials, passwordsSetAt };
}

function hashOf({ passwordHash, password_hash, custom_password_hash: custom }: Secret): string | undefined {
  const plain = passwordHash ?? password_hash;
  if (custom == null && (plain === undefined || plain === '')) return undefined;
  const path = custom == null ? 'passwordHash' : 'custom_password_hash';
  const checked = custom == null ? checkBcrypt(plain ?? '') : checkHash(custom);
  if ('fault' in checked) return refuse(path, checked.fault, 'FORMAT');
  return custom == null ? checked.hash : (plainOf(custom) ?? checked.hash);
}

const plainHash = z.strictObject({
  algorithm: z.enum(['argon2', 'bcrypt']),
  hash: z.strictObject({
    value: z.string().regex(/^\$(argon2id|2[aby])\$/),
    encoding: z.literal('utf8').optional(),
  }),
});

/** Returns a hash in the form in which our own are stored, if it needs nothing beside it. */
const plainOf = (custom: unknown): string | undefined => plainHash.safeParse(custom).data?.hash.value;

/** Reads what lines say about the roles, permissions and memberships of a user. */
export function accessOf(
  userId: string,
  access: readonly unknown[],
  { roles, organizations }: Pick<MoveTarget, 'roles' | 'organizations'>,
): {
  roles: string[];
  permissions: PermissionRecord[];
  memberships: MembershipRecord[];
  refused: { value: unknown; error: EntryError }[];
} {
  const own = new Set<string>();
  const permissions = new Map<string, PermissionRecord>();
  const memberships = new Map<string, MembershipRecord>();
  const refused: { value: unknown; error: EntryError }[] = [];
  for (const value of access) {
    const read = accessSchema.safeParse(value, { reportInput: true });
    if (!read.success) {
      for (const issue of read.error.issues.slice(0, 1)) refused.push({ value, error: errorOf(issue) });
      continue;
    }
    try {
      const { organization: named, roles: names = [], permissions: direct = [] } = read.data;
      const organization =
        named === undefined
          ? undefined
          : (organizations.get(named) ?? refuse('organization', `there is no organization ${named} here`));
      const found = names.map((name) => {
        const role = roles.get(name) ?? refuse('roles', `there is no role ${name} here`);
        if (role.owner_id !== undefined && role.owner_id !== organization?.id)
          refuse('roles', `the role ${name} belongs to another organization`);
        return role.id;
      });
      for (const one of direct)
        permissions.set(`${one.resource_server_identifier}\n${one.permission_name}`, one);
      if (organization === undefined) for (const role of found) own.add(role);
      else {
        const key = membershipId(organization.id, userId);
        const before = memberships.get(key)?.roles ?? [];
        memberships.set(key, {
          id: key,
          organization_id: organization.id,
          user_id: userId,
          roles: [...new Set([...before, ...found])],
        });
      }
    } catch (thrown) {
      if (!(thrown instanceof Refusal)) throw thrown;
      refused.push({ value, error: thrown.error });
    }
  }
  return {
    roles: [...own],
    permissions: [...permissions.values()],
    memberships: [...memberships.values()],
    refused,
  };
}
