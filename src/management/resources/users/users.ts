// Users: making, reading, changing and removing them.
import { z } from 'zod';
import type { AuthError } from '../../../http/errors.ts';
import type { Connection } from '../../../records/collections.ts';
import { strategyRecord } from '../../../records/connections.ts';
import { databaseOptions } from '../../../records/database-options.ts';
import { normalizeEmail } from '../../../records/email.ts';
import type { Frozen } from '../../../records/record.ts';
import type { UserRecord } from '../../../records/users.ts';
import { type Store, UniqueKeyError } from '../../../store/contract.ts';
import type { Config } from '../../../tenant/config.ts';
import { type Identity, homeOf as kept, primaryIdentity } from '../../../users/identities.ts';
import { passwordRefusal, type SignUpRefusal } from '../../../users/signup.ts';
import type { User } from '../../../users/user.ts';
import type { Users } from '../../../users/users.ts';
import { type Call, callsWith, created, noContent, ok } from '../../call.ts';
import { apiError } from '../../errors.ts';
import { fieldsQuery, selectFields } from '../../fields.ts';
import { conflict, notFound } from '../../resource.ts';
import {
  type CreateUserBody,
  createUserBody,
  mergedMetadata,
  type PatchUserBody,
  PROFILE_MEMBERS,
  patchUserBody,
} from './bodies.ts';
import { userView } from './view.ts';

export interface UsersDependencies {
  store: Store;
  users: Users;
  config: Pick<Config, 'connection' | 'connections'>;
  /** Removes a user with all that is theirs. */
  removeUser(userId: string): Promise<void>;
  /** Ends a user's sessions and refresh tokens. */
  endSessions(userId: string, reason: 'account-deactivated' | 'password-changed'): Promise<void>;
  /** Sends the mail that verifies a new address, where the tenant sends one. */
  askToVerify(user: User, connection: Connection, clientId: string | undefined, ip: string): Promise<void>;
}

export const noUser = notFound('The user does not exist.', 'inexistent_user');
const takenUser = conflict('The user already exists.', 'auth0_idp_error');

/** The user of a path. @throws AuthError 404 */
export async function userOf({ users }: Pick<UsersDependencies, 'users'>, id = ''): Promise<User> {
  const user = await users.get(id);
  if (user === undefined) throw noUser();
  return user;
}

/** A user as they are answered. */
export async function viewOf({ users }: Pick<UsersDependencies, 'users'>, user: User) {
  return userView(user, await users.identitiesOf(user.id));
}

const invalid = (message: string): AuthError => apiError(400, message, 'invalid_body');

/** The words of the hosted service for a password that is refused. */
function passwordError({ reason }: SignUpRefusal): AuthError {
  const words: Partial<Record<SignUpRefusal['reason'], string>> = {
    'weak-password': 'PasswordStrengthError: Password is too weak',
    'common-password': 'PasswordDictionaryError: Password is too common',
    'personal-password': 'PasswordNoUserInfoError: Password contains user information',
  };
  return invalid(words[reason] ?? 'PasswordStrengthError: Password is too weak');
}

/** The members of a profile that a body sets; null removes one. */
function profileOf(body: PatchUserBody): Partial<UserRecord> {
  return Object.fromEntries(
    PROFILE_MEMBERS.flatMap((name) => (body[name] === undefined ? [] : [[name, body[name] ?? undefined]])),
  );
}

async function connectionOf({ config }: UsersDependencies, name: string): Promise<Connection> {
  const connection = await config.connection(name);
  if (connection === undefined)
    throw apiError(400, 'The connection does not exist.', 'inexistent_connection');
  return connection;
}

/** The addresses that a body gives, in the form that they are kept in. */
function addressesOf(body: Pick<CreateUserBody, 'email' | 'username' | 'phone_number'>) {
  const { email, username, phone_number } = body;
  return {
    ...(typeof email === 'string' ? { email: normalizeEmail(email) ?? email } : {}),
    ...(typeof username === 'string' ? { username: username.trim().toLowerCase() } : {}),
    ...(typeof phone_number === 'string' ? { phone_number } : {}),
  };
}

async function create(deps: UsersDependencies, body: CreateUserBody, ip: string): Promise<User> {
  const connection = await connectionOf(deps, body.connection);
  const strategy = strategyRecord(connection.strategy);
  if (strategy === undefined) throw invalid('Users of this connection are made when they log in.');
  const addresses = addressesOf(body);
  if (strategy.proves !== undefined && addresses[strategy.proves] === undefined) {
    throw invalid(`Payload validation error: 'Missing required property: ${strategy.proves}'.`);
  }
  const password = body.password ?? undefined;
  if (strategy.isDatabase) requireCredentials(connection, body, password);
  const profile: Partial<UserRecord> = {
    ...profileOf(body),
    user_metadata: mergedMetadata({}, body.user_metadata),
    app_metadata: mergedMetadata({}, body.app_metadata),
  };
  const made = await deps.users
    .make({
      identity: {
        connection: connection.name,
        provider: connection.strategy,
        upstreamId: body.user_id?.replace(new RegExp(`^${connection.strategy}\\|`), ''),
        addresses,
        unique: strategy.unique,
      },
      profile,
      password: strategy.isDatabase ? password : undefined,
    })
    .catch((thrown: unknown) => {
      throw thrown instanceof UniqueKeyError ? takenUser() : thrown;
    });
  if (!('user' in made)) throw takenUser();
  if (body.verify_email !== false && body.email_verified !== true && strategy.isDatabase) {
    await deps.askToVerify(made.user, connection, undefined, ip);
  }
  return made.user;
}

function requireCredentials(
  connection: Connection,
  body: CreateUserBody,
  password: string | undefined,
): void {
  if (password === undefined)
    throw invalid("Payload validation error: 'Missing required property: password'.");
  const options = databaseOptions(connection);
  if (body.email == null && body.username == null) {
    throw invalid("Payload validation error: 'Missing required property: email'.");
  }
  if (options.requires_username && body.username == null) {
    throw invalid("Payload validation error: 'Missing required property: username'.");
  }
  if (!options.requires_username && body.username != null) {
    throw invalid('Cannot set username for connection without requires_username');
  }
  const about = { email: body.email ?? '', username: body.username ?? undefined };
  const refusal = passwordRefusal(options, password, about);
  if (refusal !== undefined) throw passwordError(refusal);
}

/** Changes of the credentials come one at a time, as at the hosted service: each has its own consequences. */
function refuseMixed(body: PatchUserBody): void {
  const has = (name: keyof PatchUserBody) => body[name] != null;
  for (const other of ['email', 'email_verified', 'username', 'phone_number'] as const) {
    if (has('password') && has(other)) throw invalid(`Cannot update password and ${other} simultaneously`);
  }
  if (has('username') && has('email')) throw invalid('Cannot update username and email simultaneously');
}

async function patch(deps: UsersDependencies, before: User, body: PatchUserBody, ip: string): Promise<User> {
  refuseMixed(body);
  const identities = await deps.users.identitiesOf(before.id);
  const { connection, identity } = await homeOf(deps, identities, body.connection ?? undefined);
  const addresses = addressesOf(body);
  refuseFederated(identity, body);
  if (typeof body.password === 'string')
    await setPassword(deps, before, { connection, identity }, body.password);
  const isNewEmail = addresses.email !== undefined && addresses.email !== before.email;
  const change: Partial<UserRecord> = {
    // A new address is nobody's until it was proved, unless the caller says so.
    ...(isNewEmail ? { email_verified: false } : {}),
    ...profileOf(body),
    ...addresses,
    ...(body.user_metadata === undefined
      ? {}
      : { user_metadata: mergedMetadata(before.user_metadata, body.user_metadata) }),
    ...(body.app_metadata === undefined
      ? {}
      : { app_metadata: mergedMetadata(before.app_metadata, body.app_metadata) }),
  };
  const after = await deps.users.update(before.id, change).catch((thrown: unknown) => {
    throw thrown instanceof UniqueKeyError
      ? apiError(400, 'The specified new email already exists', 'auth0_idp_error')
      : thrown;
  });
  if (after === undefined) throw noUser();
  if (body.blocked === true) await deps.endSessions(before.id, 'account-deactivated');
  if (body.verify_email === true && connection !== undefined) {
    await deps.askToVerify(after, connection, body.client_id ?? undefined, ip);
  }
  return after;
}

/** The connection whose credentials a body changes: the one that it names, else that of the user's first identity. */
async function homeOf(
  { config }: UsersDependencies,
  identities: readonly Identity[],
  name: string | undefined,
): Promise<{ connection: Connection | undefined; identity: Identity | undefined }> {
  const identity =
    name === undefined ? primaryIdentity(identities) : identities.find((one) => one.connection === name);
  if (identity === undefined) throw apiError(400, 'The connection does not exist.', 'inexistent_connection');
  return { connection: await config.connection(identity.connection), identity };
}

/** What an upstream provider says of a user is changed there. */
function refuseFederated(identity: Identity | undefined, body: PatchUserBody): void {
  if (identity === undefined || strategyRecord(identity.provider) !== undefined) return;
  const ours = new Set(['user_metadata', 'app_metadata', 'blocked', 'connection', 'client_id']);
  const foreign = Object.entries(body).find(([name, value]) => value !== undefined && !ours.has(name))?.[0];
  if (foreign === undefined) return;
  throw invalid(
    `The following user attributes cannot be updated: ${foreign}. The connection (${identity.connection}) must either be a database connection (using the Auth0 store), a passwordless connection (email or sms) or has disabled 'Sync user profile attributes at each login'.`,
  );
}

async function setPassword(
  deps: UsersDependencies,
  user: User,
  { connection, identity }: Awaited<ReturnType<typeof homeOf>>,
  password: string,
): Promise<void> {
  if (connection === undefined || strategyRecord(connection.strategy)?.isDatabase !== true) {
    throw invalid('Cannot change password for users of this connection');
  }
  const options = databaseOptions(connection);
  const refusal = passwordRefusal(options, password, { email: user.email ?? '', username: user.username });
  if (refusal !== undefined) throw passwordError(refusal);
  const home = identity === undefined ? user.id : kept(identity);
  const size = options.password_history?.enable === true ? options.password_history.size : 0;
  if (size > 0 && (await deps.users.isUsedBefore(home, password, size))) {
    throw invalid('PasswordHistoryError: Password has previously been used');
  }
  await deps.users.setPassword(user.id, password, home);
  await deps.endSessions(user.id, 'password-changed');
}

/** Members of a user's own record that the user's own token may change. */
const OWN_MEMBERS = new Set(['user_metadata']);

const call = callsWith<UsersDependencies>();

/** The calls. */
export const userRecordCalls: Call<UsersDependencies>[] = [
  call({
    method: 'POST',
    path: '/users',
    scopes: ['create:users'],
    summary: 'Create a user',
    body: createUserBody,
    handle: async (deps, { body, ip }) => created(await viewOf(deps, await create(deps, body, ip))),
  }),
  call({
    method: 'GET',
    path: '/users-by-email',
    scopes: ['read:users'],
    summary: 'Search users by email',
    query: z.strictObject({ ...fieldsQuery, email: z.string().min(1).max(320) }),
    handle: async (deps, { query }) => {
      const email = normalizeEmail(query.email) ?? query.email;
      const found = await deps.store.collection('users').findBy('email', email);
      return ok(await Promise.all(found.map(async (user) => selectFields(await viewOf(deps, user), query))));
    },
  }),
  call({
    method: 'GET',
    path: '/users/:id',
    scopes: ['read:users', 'read:user_idp_tokens'],
    ownScopes: ['read:current_user'],
    summary: 'Get a user',
    query: z.strictObject(fieldsQuery),
    handle: async (deps, { params, query }) => {
      const user = await userOf(deps, params.id);
      return ok(selectFields(await viewOf(deps, user), query));
    },
  }),
  call({
    method: 'PATCH',
    path: '/users/:id',
    scopes: ['update:users', 'update:users_app_metadata'],
    ownScopes: ['update:current_user_metadata'],
    summary: 'Update a user',
    body: patchUserBody,
    handle: async (deps, { params, body, caller, ip }) => {
      const allowed = caller.isUser
        ? OWN_MEMBERS
        : caller.scopes.has('update:users')
          ? undefined
          : new Set(['app_metadata']);
      const foreign = allowed && Object.keys(body).find((name) => !allowed.has(name));
      if (foreign !== undefined)
        throw apiError(403, 'Insufficient scope, expected any of: update:users', 'insufficient_scope');
      const before = await userOf(deps, params.id);
      const after = await patch(deps, before, body, ip);
      return ok(await viewOf(deps, after), { before: shortView(before), after: shortView(after) });
    },
  }),
  call({
    method: 'DELETE',
    path: '/users/:id',
    scopes: ['delete:users'],
    ownScopes: ['delete:current_user'],
    summary: 'Delete a user',
    handle: async (deps, { params }) => {
      const before = await deps.users.get(params.id ?? '');
      if (before !== undefined) await deps.removeUser(before.id);
      return noContent(before === undefined ? {} : { before: shortView(before) });
    },
  }),
];

/** What the log keeps of a user: not their metadata, which may hold anything. */
function shortView({
  id,
  email,
  username,
  phone_number,
  email_verified,
  blocked,
}: Frozen<UserRecord>): object {
  return { user_id: id, email, username, phone_number, email_verified, blocked };
}
