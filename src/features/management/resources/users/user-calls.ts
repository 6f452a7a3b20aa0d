// The common part of the calls for users: their dependencies, the user that a path names, and members of bodies.

import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import type { AuthError } from '../../../../http/errors.ts';
import { emailSchema } from '../../../../records/base/email.ts';
import type { Frozen } from '../../../../records/base/record.ts';
import type { Connection } from '../../../../records/collections.ts';
import { strategyRecord } from '../../../../records/connections/connections.ts';
import { attributesOf } from '../../../../records/connections/database-attributes.ts';
import { rootAttributesOf } from '../../../../records/connections/upstream.ts';
import { changesPasswords, customDatabase, databaseOptions } from '../../../../records/database-options.ts';
import { addressesOfNew } from '../../../../records/new-identity.ts';
import type { DatabaseOptions } from '../../../../records/tenant/tenant.ts';
import { INTERNAL_MEMBERS, type UserRecord } from '../../../../records/users/users.ts';
import { type Store, UniqueKeyError } from '../../../../store/contract.ts';
import type { Config } from '../../../../tenant/config.ts';
import type { Asker } from '../../../../users/asker.ts';
import {
  type Identity,
  isLinked,
  MAX_METADATA_LENGTH,
  type MetadataMerge,
  metadataFault,
  originalUserId,
  primaryIdentity,
} from '../../../../users/changes.ts';
import { LINKED_MEMBERS } from '../../../../users/linking.ts';
import { newPasswordRefusal, type PasswordRefusal, usernameRefusal } from '../../../../users/signup.ts';
import type { User } from '../../../../users/user.ts';
import type { Users } from '../../../../users/users.ts';
import { withJsonLength } from '../../body-size.ts';
import type { CallRequest } from '../../call.ts';
import { apiError } from '../../management-errors.ts';
import { notFound } from '../../resource.ts';

export interface UsersDependencies {
  store: Store;
  users: Users;
  config: Pick<Config, 'connection' | 'connections' | 'settings'>;
  removeUser(userId: string, by?: User): Promise<void>;
  renewProviderTokens(userId: string): Promise<void>;
  /** Ends a user's sessions and refresh tokens. */
  endAccess(userId: string, reason: 'account-deactivated' | 'password-changed'): Promise<void>;
  /** Sends the e-mail that verifies a new address, if the tenant sends these. */
  askToVerify(user: User, connection: Connection, clientId: string | undefined, ip: string): Promise<void>;
}

export type RequestOrigin = Pick<CallRequest, 'ip' | 'userAgent'>;

/** Returns the request as the tenant's own code sees it. */
export function askerOf(method: 'POST' | 'PATCH', { ip, userAgent: user_agent }: RequestOrigin): Asker {
  return { request: { ip, user_agent, method, query: {}, body: {} } };
}

export const noUser = notFound('The user does not exist.', 'inexistent_user');

/** Returns the error for a user whom a path names and who does not exist. A text that is no user ID at all is refused. */
export const noUserNamed = (id: string) =>
  id.includes('|')
    ? noUser()
    : apiError(400, `Object didn't pass validation for format user-id: ${id}`, 'invalid_uri');

/** Returns the user that a path names. @throws AuthError 404, and 400 for what is no user ID */
export async function userOf({ users }: Pick<UsersDependencies, 'users'>, id = ''): Promise<User> {
  const user = await users.get(id);
  if (user === undefined) throw noUserNamed(id);
  return user;
}

/** Returns a user as the API shows it. @param shows further members that the caller may read. */
export async function viewOf(
  { users }: Pick<UsersDependencies, 'users'>,
  user: User,
  shows: { providerTokens?: boolean } = {},
) {
  return userView(user, await users.identitiesOf(user.id), shows);
}

export const invalid = (message: string): AuthError => apiError(400, message, 'invalid_body');

/** Returns the error for a password that is refused, with the hosted service's message. */
export function passwordError({ reason }: PasswordRefusal): AuthError {
  const messages: Record<PasswordRefusal['reason'], string> = {
    'weak-password': 'PasswordStrengthError: Password is too weak',
    'common-password': 'PasswordDictionaryError: Password is too common',
    'personal-password': 'PasswordNoUserInfoError: Password contains user information',
    'used-password': 'PasswordHistoryError: Password has previously been used',
  };
  return invalid(messages[reason]);
}

/** Refuses a username that users of a database connection cannot have. @throws AuthError 400 */
export function requireValidUsername(options: DatabaseOptions, username: string): void {
  const { isIdentifier, signUp } = attributesOf(options).username;
  if (!isIdentifier && signUp === 'inactive')
    throw invalid('Cannot set username for connection without requires_username');
  const refusal = usernameRefusal(options, username);
  if (refusal === undefined) return;
  const { min, max } = refusal;
  throw invalid(
    `Payload validation error: 'username: ${min} to ${max} letters, digits and _+-.!#$^\`~@', and no e-mail address or phone number that could log in'.`,
  );
}

/** Returns the members of a profile that a body sets; null removes a member. */
export function profileOf(body: PatchUserBody): Partial<UserRecord> {
  return Object.fromEntries(
    PROFILE_MEMBERS.flatMap((name) => (body[name] === undefined ? [] : [[name, body[name] ?? undefined]])),
  );
}

// A user as the Management API shows it.

/** Members of the record that no response contains. */
const OWN = new Set<string>(['id', 'permissions', 'roles', ...INTERNAL_MEMBERS]);

/**
 * Returns identities as the API shows them, the primary one first.
 * @param shows whether the caller may read the tokens of upstream providers.
 */
export function identityViews(
  identities: readonly Identity[],
  shows: { providerTokens?: boolean } = {},
): object[] {
  const primary = primaryIdentity(identities);
  return [...(primary === undefined ? [] : [primary]), ...identities.filter((one) => one !== primary)].map(
    (one) => ({
      connection: one.connection,
      user_id: one.upstream_id,
      provider: one.provider,
      isSocial: one.isSocial,
      ...(shows.providerTokens === true && tokensOf(one)),
      ...(one === primary || one.profile === undefined
        ? {}
        : { profileData: { ...one.attributes, ...one.profile } }),
    }),
  );
}

/**
 * Returns the tokens from an identity's last login. They have `expires_at`; `expires_in` would be relative to that
 * login.
 */
function tokensOf({ upstream }: Identity): object {
  const { access_token, refresh_token, expires_at } = upstream ?? {};
  return {
    ...(access_token !== undefined && { access_token }),
    ...(refresh_token !== undefined && { refresh_token }),
    ...(expires_at !== undefined && { expires_at: new Date(expires_at * 1000).toISOString() }),
  };
}

/**
 * Attributes from the provider that the profile does not have are top-level members too.
 * @param shows as for {@link identityViews}.
 */
export function userView(
  user: Frozen<UserRecord>,
  identities: readonly Identity[],
  shows: { providerTokens?: boolean } = {},
): Record<string, unknown> {
  const shown = Object.fromEntries(Object.entries(user).filter(([name]) => !OWN.has(name)));
  const name = user.name ?? user.email ?? user.username ?? user.phone_number;
  return {
    ...primaryIdentity(identities)?.attributes,
    user_id: user.id,
    ...shown,
    name,
    nickname: user.nickname ?? user.username ?? user.email?.split('@')[0] ?? name,
    picture: user.picture ?? pictureOf(user.email ?? String(name ?? user.id)),
    identities: identityViews(identities, shows),
  };
}

/** Returns the default picture, as at the hosted service: a Gravatar, or two letters. */
function pictureOf(text: string): string {
  const hash = createHash('md5').update(text.trim().toLowerCase()).digest('hex');
  const letters = encodeURIComponent(text.slice(0, 2).toLowerCase());
  return `https://s.gravatar.com/avatar/${hash}?s=480&r=pg&d=https%3A%2F%2Fcdn.auth0.com%2Favatars%2F${letters}.png`;
}

// The bodies that create and change users.

const metadata = z.record(z.string(), z.unknown());
const text = (longest: number) => z.string().min(1).max(longest);

/** Claims of OpenID Connect Core §5.1 that the hosted service's user records do not have. */
const standardClaims = {
  middle_name: text(150).nullish(),
  preferred_username: text(150).nullish(),
  profile: z.url().max(2048).nullish(),
  website: z.url().max(2048).nullish(),
  gender: text(64).nullish(),
  birthdate: z
    .string()
    .regex(/^(\d{4})(-\d{2}-\d{2})?$/, 'must be YYYY-MM-DD or YYYY')
    .nullish(),
  zoneinfo: text(64).nullish(),
  locale: text(64).nullish(),
  address: z.record(z.string().max(64), z.string().max(1024)).nullish(),
};

const profile = {
  given_name: text(150).nullish(),
  family_name: text(150).nullish(),
  name: text(300).nullish(),
  nickname: text(300).nullish(),
  picture: z.url().max(2048).nullish(),
  user_metadata: withJsonLength(metadata, MAX_METADATA_LENGTH.user_metadata).nullish(),
  app_metadata: withJsonLength(metadata, MAX_METADATA_LENGTH.app_metadata).nullish(),
  blocked: z.boolean().nullish(),
  email_verified: z.boolean().nullish(),
  phone_verified: z.boolean().nullish(),
  verify_email: z.boolean().nullish(),
  ...standardClaims,
};

const identifiers = {
  email: emailSchema.nullish(),
  phone_number: z
    .string()
    .regex(/^\+[0-9]{1,15}$/, "Object didn't pass validation for format phone: must match ^\\+[0-9]{1,15}$")
    .nullish(),
  username: text(128).nullish(),
  password: text(1024).nullish(),
};

export const createUserBody = z.strictObject({
  ...profile,
  ...identifiers,
  connection: text(128),
  user_id: z.string().min(1).max(255).regex(/^\S*$/, 'must hold no spaces').nullish(),
});

export const patchUserBody = z.strictObject({
  ...profile,
  ...identifiers,
  connection: text(128).nullish(),
  client_id: text(255).nullish(),
  verify_phone_number: z.boolean().nullish(),
  verify_password: z.boolean().nullish(),
});

export type CreateUserBody = z.output<typeof createUserBody>;
export type PatchUserBody = z.output<typeof patchUserBody>;

/** The members that are stored as they are sent. */
const PROFILE_MEMBERS = [
  'given_name',
  'family_name',
  'name',
  'nickname',
  'picture',
  'blocked',
  'email_verified',
  'phone_verified',
  ...(Object.keys(standardClaims) as (keyof typeof standardClaims)[]),
] as const;

/** Returns metadata merged at the first level: null removes a key, an empty object removes all. */
export function mergedMetadata(
  before: Readonly<Record<string, unknown>>,
  patch: Readonly<Record<string, unknown>> | null | undefined,
): Record<string, unknown> {
  if (patch === undefined) return { ...before };
  if (patch === null || Object.keys(patch).length === 0) return {};
  return Object.fromEntries(Object.entries({ ...before, ...patch }).filter(([, value]) => value !== null));
}

// `PATCH /users/{id}`: changing a user.

/** Refuses to change several credentials at once, as the hosted service does: each change has its own effects. */
function refuseMixed(body: PatchUserBody): void {
  const has = (name: keyof PatchUserBody) => body[name] != null;
  for (const other of ['email', 'email_verified', 'username', 'phone_number'] as const) {
    if (has('password') && has(other)) throw invalid(`Cannot update password and ${other} simultaneously`);
  }
  if (has('username') && has('email')) throw invalid('Cannot update username and email simultaneously');
}

/**
 * A new password or a block ends the user's sessions and refresh tokens. A body with the current values writes nothing.
 * @param origin the source of the request, for the verification e-mail and for the tenant's own code.
 * @returns the user, and whether nothing changed at all.
 * @throws AuthError 400; 404 if the user does not exist any more.
 */
export async function patchUser(
  deps: UsersDependencies,
  before: User,
  body: PatchUserBody,
  origin: RequestOrigin,
): Promise<{ user: User; isUnchanged: boolean }> {
  refuseMixed(body);
  const identities = await deps.users.identitiesOf(before.id);
  const { connection, identity } = await connectionAndIdentity(
    deps,
    identities,
    body.connection ?? undefined,
  );
  const addresses = addressesOfNew(body);
  refuseFederated({ connection, identity }, body);
  const linked = identity !== undefined && isLinked(identity) ? identity : undefined;
  // Members of a linked identity are changed in that identity.
  const currentProfile = linked === undefined ? before : (linked.profile as Partial<User> | undefined);
  if (linked !== undefined && body.verify_email === true)
    throw invalid('Cannot verify the email of a linked identity');
  if (addresses.username !== undefined && addresses.username !== currentProfile?.username)
    await refuseUsername(deps, linked ?? primaryIdentity(identities), addresses.username);
  const merge: MetadataMerge = ({ user_metadata, app_metadata }) => ({
    ...(body.user_metadata === undefined
      ? {}
      : { user_metadata: mergedMetadata(user_metadata, body.user_metadata) }),
    ...(body.app_metadata === undefined
      ? {}
      : { app_metadata: mergedMetadata(app_metadata, body.app_metadata) }),
  });
  // Judged before the password is set or a custom database changes anything. The write judges again.
  // docs/understand/decisions/requests.md#everything-that-can-refuse-is-asked-before-anything-is-written
  const fault = metadataFault({ ...before, ...merge(before) }, before);
  if (fault !== undefined) throw fault;
  if (typeof body.password === 'string')
    await setPassword(deps, before, { connection, identity, origin }, body.password);
  const isNew = (kind: 'email' | 'phone_number') =>
    addresses[kind] !== undefined && addresses[kind] !== currentProfile?.[kind];
  const changes: Partial<UserRecord> = {
    // A new address is unverified, unless the caller says otherwise.
    ...(isNew('email') && { email_verified: false }),
    ...(isNew('phone_number') && { phone_verified: false }),
    ...profileOf(body),
    ...addresses,
  };
  const [linkedChange, userChange] = linked === undefined ? [{}, changes] : splitChange(changes);
  const isSame =
    hasValues(before, { ...userChange, ...merge(before) }) && hasValues(currentProfile, linkedChange);
  const after = isSame
    ? before
    : await writeUser(deps, before.id, { change: userChange, merge, linkedChange, linked });
  if (body.blocked === true) await deps.endAccess(before.id, 'account-deactivated');
  if (body.verify_email === true && connection !== undefined) {
    await deps.askToVerify(after, connection, body.client_id ?? undefined, origin.ip);
  }
  const isUnchanged = isSame && typeof body.password !== 'string' && body.verify_email !== true;
  return { user: after, isUnchanged };
}

/** Whether a record has all the given values already. */
function hasValues(record: object | undefined, values: object): boolean {
  const current = (record ?? {}) as Record<string, unknown>;
  return Object.entries(values).every(([name, value]) => isDeepStrictEqual(current[name], value));
}

/** Splits a change into the members of a linked identity and those of the user. */
function splitChange(changes: Partial<UserRecord>): [Partial<UserRecord>, Partial<UserRecord>] {
  const isLinkedMember = ([name]: [string, unknown]) => LINKED_MEMBERS.some((one) => one === name);
  const entries = Object.entries(changes);
  return [
    Object.fromEntries(entries.filter(isLinkedMember)),
    Object.fromEntries(entries.filter((one) => !isLinkedMember(one))),
  ];
}

/** Refuses a username that the connection of an identity does not allow. @throws AuthError 400 */
async function refuseUsername(
  { config }: UsersDependencies,
  identity: Identity | undefined,
  username: string,
): Promise<void> {
  const connection = await config.connection(identity?.connection ?? '');
  if (connection !== undefined && strategyRecord(connection.strategy)?.isDatabase === true)
    requireValidUsername(databaseOptions(connection), username);
}

/** The names of identifiers in the message for one that is taken. */
const IDENTIFIER_NAMES: Readonly<Record<string, string>> = {
  phone_number: 'phone number',
  username: 'username',
};

interface UserChange {
  change: Partial<UserRecord>;
  merge: MetadataMerge;
  /** The members of the linked identity, if one is named. */
  linkedChange: Partial<UserRecord>;
  linked: Identity | undefined;
}

async function writeUser(
  { users }: UsersDependencies,
  id: string,
  { change, merge, linkedChange, linked }: UserChange,
): Promise<User> {
  const write = async () => {
    if (linked !== undefined && Object.keys(linkedChange).length > 0)
      if (!(await users.updateLinked(id, linked.id, linkedChange))) return undefined;
    return users.update(id, change, merge);
  };
  const after = await write().catch((thrown: unknown) => {
    throw thrown instanceof UniqueKeyError
      ? apiError(
          400,
          `The specified new ${IDENTIFIER_NAMES[thrown.key] ?? 'email'} already exists`,
          'auth0_idp_error',
        )
      : thrown;
  });
  if (after === undefined) throw noUser();
  return after;
}

/**
 * Returns the identity whose credentials a body changes, and its connection: the connection that the body names,
 * otherwise that of the primary identity.
 */
async function connectionAndIdentity(
  { config }: UsersDependencies,
  identities: readonly Identity[],
  name: string | undefined,
): Promise<{ connection: Connection | undefined; identity: Identity | undefined }> {
  const identity =
    name === undefined ? primaryIdentity(identities) : identities.find((one) => one.connection === name);
  if (identity === undefined) throw apiError(400, 'The connection does not exist.', 'inexistent_connection');
  return { connection: await config.connection(identity.connection), identity };
}

/** Members that are changed in a custom database too, for a user who is stored there. */
const CUSTOM_DATABASE_MEMBERS = [
  'email',
  'email_verified',
  'username',
  'password',
  'verify_email',
  'verify_password',
];

/**
 * Refuses to change members that come from an upstream provider or a custom database, and would be overwritten.
 * @throws AuthError 400
 */
function refuseFederated(
  { connection, identity }: Awaited<ReturnType<typeof connectionAndIdentity>>,
  body: PatchUserBody,
): void {
  const strategy = identity && strategyRecord(identity.provider);
  const isElsewhere = connection !== undefined && customDatabase(connection) === 'elsewhere';
  if (identity === undefined || (strategy !== undefined && strategy.isUpstream !== true && !isElsewhere))
    return;
  const isRefreshed =
    strategy === undefined || connection === undefined || rootAttributesOf(connection) === 'on_each_login';
  const changeable = new Set([
    ...['user_metadata', 'app_metadata', 'blocked', 'connection', 'client_id'],
    // The members that the scripts of the custom database change.
    ...(isElsewhere ? CUSTOM_DATABASE_MEMBERS : []),
    ...(isRefreshed ? [] : ['name', 'nickname', 'given_name', 'family_name', 'picture']),
  ]);
  const refused = Object.entries(body).find(
    ([name, value]) => value !== undefined && !changeable.has(name),
  )?.[0];
  if (refused === undefined) return;
  throw invalid(
    `The following user attributes cannot be updated: ${refused}. The connection (${identity.connection}) must either be a database connection (using the Auth0 store), a passwordless connection (email or sms) or has disabled 'Sync user profile attributes at each login'.`,
  );
}

async function setPassword(
  deps: UsersDependencies,
  user: User,
  {
    connection,
    identity,
    origin,
  }: Awaited<ReturnType<typeof connectionAndIdentity>> & { origin: RequestOrigin },
  password: string,
): Promise<void> {
  const isDatabase = connection !== undefined && strategyRecord(connection.strategy)?.isDatabase === true;
  if (!isDatabase || !changesPasswords(connection)) {
    throw invalid('Cannot change password for users of this connection');
  }
  const home = identity === undefined ? user.id : originalUserId(identity);
  const owner = { user, home };
  const refusal = await newPasswordRefusal(deps.users, databaseOptions(connection), password, owner);
  if (refusal !== undefined) throw passwordError(refusal);
  await deps.users.setPassword(user.id, password, { home, asker: askerOf('PATCH', origin) });
  await deps.endAccess(user.id, 'password-changed');
}
