// `PATCH /users/{id}`: changing a user.
import { isDeepStrictEqual } from 'node:util';
import type { Connection } from '../../../../records/collections.ts';
import { strategyRecord } from '../../../../records/connections.ts';
import { changesPasswords, customDatabase, databaseOptions } from '../../../../records/database-options.ts';
import { addressesOfNew } from '../../../../records/new-identity.ts';
import { rootAttributesOf } from '../../../../records/upstream.ts';
import type { UserRecord } from '../../../../records/users.ts';
import { UniqueKeyError } from '../../../../store/contract.ts';
import type { MetadataMerge } from '../../../../users/changes.ts';
import { type Identity, isLinked, originalUserId, primaryIdentity } from '../../../../users/identities.ts';
import { LINKED_MEMBERS } from '../../../../users/linking.ts';
import { metadataFault } from '../../../../users/metadata-bounds.ts';
import { newPasswordRefusal } from '../../../../users/signup.ts';
import type { User } from '../../../../users/user.ts';
import { apiError } from '../../errors.ts';
import { mergedMetadata, type PatchUserBody } from './bodies.ts';
import {
  askerOf,
  invalid,
  noUser,
  passwordError,
  profileOf,
  type RequestOrigin,
  requireValidUsername,
  type UsersDependencies,
} from './user.ts';

/** Refuses to change several credentials at once, as the hosted service does: each change has its own effects. */
function refuseMixed(body: PatchUserBody): void {
  const has = (name: keyof PatchUserBody) => body[name] != null;
  for (const other of ['email', 'email_verified', 'username', 'phone_number'] as const) {
    if (has('password') && has(other)) throw invalid(`Cannot update password and ${other} simultaneously`);
  }
  if (has('username') && has('email')) throw invalid('Cannot update username and email simultaneously');
}

/**
 * Changes a user. A new password or a block ends the user's sessions and refresh tokens. A body with the current
 * values writes nothing.
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
  if (body.blocked === true) await deps.endSessions(before.id, 'account-deactivated');
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
  await deps.endSessions(user.id, 'password-changed');
}
