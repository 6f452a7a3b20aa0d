// `/users`: creating, reading, changing and deleting users.
import { z } from 'zod';
import { lookupEmail } from '../../../../records/base/email.ts';
import type { Frozen } from '../../../../records/base/record.ts';
import type { Connection } from '../../../../records/collections.ts';
import { strategyRecord } from '../../../../records/connections/connections.ts';
import {
  attributesOf,
  identifiersOf,
  uniqueIn,
} from '../../../../records/connections/database-attributes.ts';
import { ADDRESS_KINDS } from '../../../../records/connections/identities.ts';
import { canMakeUsers, databaseOptions, passwordUse } from '../../../../records/database-options.ts';
import { addressesOfNew } from '../../../../records/new-identity.ts';
import type { UserRecord } from '../../../../records/users/users.ts';
import { UniqueKeyError } from '../../../../store/contract.ts';
import { expectedConnection } from '../../../../users/connection-check.ts';
import { RegistrationRefused } from '../../../../users/registration.ts';
import { passwordRefusal } from '../../../../users/signup.ts';
import type { User } from '../../../../users/user.ts';
import { type Call, callsWith, created, noContent, ok } from '../../call.ts';
import { apiError } from '../../management-errors.ts';
import { fieldsQuery, selectFields } from '../../management-fields.ts';
import { conflict } from '../../resource.ts';
import {
  askerOf,
  type CreateUserBody,
  createUserBody,
  invalid,
  mergedMetadata,
  passwordError,
  patchUser,
  patchUserBody,
  profileOf,
  type RequestOrigin,
  requireValidUsername,
  type UsersDependencies,
  userOf,
  viewOf,
} from './user-calls.ts';

/** Members that a user's own token may change. */
const USER_MEMBERS = new Set(['user_metadata']);

const call = callsWith<UsersDependencies>();

export const userRecordCalls: Call<UsersDependencies>[] = [
  call({
    method: 'POST',
    path: '/users',
    scopes: ['create:users'],
    summary: 'Create a user',
    body: createUserBody,
    handle: async (deps, { body, ip, userAgent }) =>
      created(await viewOf(deps, await createUser(deps, body, { ip, userAgent }))),
  }),
  call({
    method: 'GET',
    path: '/users-by-email',
    scopes: ['read:users'],
    summary: 'Search users by email',
    query: z.strictObject({ ...fieldsQuery, email: z.string().min(1).max(320) }),
    handle: async (deps, { query }) => {
      const email = lookupEmail(query.email) ?? query.email;
      const found = await deps.users.withEmail(email);
      return ok(await Promise.all(found.map(async (user) => selectFields(await viewOf(deps, user), query))));
    },
  }),
  call({
    method: 'GET',
    path: '/users/:id',
    scopes: ['read:users', 'read:user_idp_tokens'],
    currentUserScopes: ['read:current_user'],
    summary: 'Get a user',
    query: z.strictObject(fieldsQuery),
    handle: async (deps, { params, query, caller }) => {
      const user = await userOf(deps, params.id);
      const providerTokens = !caller.isUser && caller.scopes.has('read:user_idp_tokens');
      if (providerTokens) await deps.renewProviderTokens(user.id);
      return ok(selectFields(await viewOf(deps, user, { providerTokens }), query));
    },
  }),
  call({
    method: 'PATCH',
    path: '/users/:id',
    scopes: ['update:users', 'update:users_app_metadata'],
    currentUserScopes: ['update:current_user_metadata'],
    currentUserAct: 'profile',
    summary: 'Update a user',
    body: patchUserBody,
    handle: async (deps, { params, body, caller, ip, userAgent }) => {
      const allowed = caller.isUser
        ? USER_MEMBERS
        : caller.scopes.has('update:users')
          ? undefined
          : new Set(['app_metadata']);
      const refused = allowed && Object.keys(body).find((name) => !allowed.has(name));
      if (refused !== undefined)
        throw apiError(403, 'Insufficient scope, expected any of: update:users', 'insufficient_scope');
      const before = await userOf(deps, params.id);
      const { user, isUnchanged } = await patchUser(deps, before, body, { ip, userAgent });
      const log = { before: shortView(before), after: shortView(user), isUnchanged };
      return ok(await viewOf(deps, user), log);
    },
  }),
  call({
    method: 'DELETE',
    path: '/users/:id',
    scopes: ['delete:users'],
    currentUserScopes: ['delete:current_user'],
    currentUserAct: 'deletion',
    summary: 'Delete a user',
    handle: async (deps, { params, caller, admitAgain }) => {
      if (caller.isUser && !deps.config.settings().tenant.account_page.allow_deletion)
        throw apiError(403, 'Users may not delete their accounts.', 'operation_not_supported');
      const before = await deps.users.get(params.id ?? '');
      await admitAgain();
      if (before !== undefined) await deps.removeUser(before.id, caller.isUser ? before : undefined);
      return noContent(before === undefined ? {} : { before: shortView(before) });
    },
  }),
];

/** Returns a user as the log shows it: without metadata, which may contain anything. */
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

// `POST /users`: creating a user.

const userExists = conflict('The user already exists.', 'auth0_idp_error');

async function connectionOf({ config }: UsersDependencies, name: string): Promise<Connection> {
  const connection = await config.connection(name);
  if (connection === undefined)
    throw apiError(400, 'The connection does not exist.', 'inexistent_connection');
  return connection;
}

/**
 * Creates a user of the connection that the body names.
 * @param origin the source of the request, for the verification e-mail and for the tenant's own code.
 * @throws AuthError 400, also if the tenant's own code refuses the user; 409 if the user exists.
 */
async function createUser(
  deps: UsersDependencies,
  body: CreateUserBody,
  origin: RequestOrigin,
): Promise<User> {
  const connection = await connectionOf(deps, body.connection);
  const strategy = strategyRecord(connection.strategy);
  if (strategy === undefined || strategy.isUpstream === true)
    throw invalid('Users of this connection are made when they log in.');
  const addresses = addressesOfNew(body);
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
  const result = await deps.users
    .create({
      identity: {
        ...expectedConnection(connection),
        provider: connection.strategy,
        upstreamId: withoutStart(body.user_id ?? undefined, `${connection.strategy}|`),
        addresses,
        unique: strategy.isDatabase ? uniqueIn(databaseOptions(connection)) : strategy.unique,
      },
      profile,
      password: strategy.isDatabase ? password : undefined,
      asker: askerOf('POST', origin),
    })
    .catch((thrown: unknown) => {
      if (thrown instanceof RegistrationRefused)
        throw apiError(400, thrown.error_description, 'extensibility_error');
      throw thrown instanceof UniqueKeyError ? userExists() : thrown;
    });
  if (!('user' in result)) throw userExists();
  if (body.verify_email !== false && body.email_verified !== true && strategy.isDatabase) {
    await deps.askToVerify(result.user, connection, undefined, origin.ip);
  }
  return result.user;
}

function requireCredentials(
  connection: Connection,
  body: CreateUserBody,
  password: string | undefined,
): void {
  if (password === undefined && !passwordUse(connection).isOptional)
    throw invalid("Payload validation error: 'Missing required property: password'.");
  if (!canMakeUsers(connection)) throw invalid('Users of this connection are made elsewhere.');
  const options = databaseOptions(connection);
  requireAddresses(connection, body);
  const refusal = password === undefined ? undefined : passwordRefusal(options, password, body);
  if (refusal !== undefined) throw passwordError(refusal);
}

/**
 * Refuses a user without the identifiers that the connection requires, or with one that it does not allow.
 * @throws AuthError 400
 */
function requireAddresses(connection: Connection, body: CreateUserBody): void {
  const options = databaseOptions(connection);
  const attributes = attributesOf(options);
  // Without `attributes`, a username is enough, whether or not the connection requires one.
  const sufficient = options.attributes == null ? (['email', 'username'] as const) : identifiersOf(options);
  const missingRequired = ADDRESS_KINDS.find((kind) => attributes[kind].isRequired && body[kind] == null);
  const missing = sufficient.every((kind) => body[kind] == null) ? sufficient[0] : missingRequired;
  if (missing !== undefined)
    throw invalid(`Payload validation error: 'Missing required property: ${missing}'.`);
  if (body.username != null) requireValidUsername(options, body.username);
}

function withoutStart(text: string | undefined, start: string): string | undefined {
  return text?.startsWith(start) ? text.slice(start.length) : text;
}
