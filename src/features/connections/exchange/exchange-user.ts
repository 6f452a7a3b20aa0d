// Finds the user that an action of `custom-token-exchange` names: by user id, or as a user of a connection, who may be created
// or updated.
import type {
  ExchangedAttributes,
  UserOfConnection,
} from '../../../capabilities/actions/exchange-methods.ts';
import { requestContextOf } from '../../../engine/login/login-event.ts';
import type { GrantRequest } from '../../../engine/token/tokens.ts';
import { AuthError } from '../../../http/errors.ts';
import { normalizeEmail } from '../../../records/base/email.ts';
import type { Connection } from '../../../records/collections.ts';
import { type StrategyName, strategyRecord } from '../../../records/connections/connections.ts';
import { attributesOf, uniqueIn } from '../../../records/connections/database-attributes.ts';
import { databaseOptions } from '../../../records/database-options.ts';
import type { UserRecord } from '../../../records/users/users.ts';
import { UniqueKeyError } from '../../../store/contract.ts';
import type { Config } from '../../../tenant/config.ts';
import type { Events } from '../../../tenant/events.ts';
import { type Identity, isLinked, originalUserId } from '../../../users/changes.ts';
import { expectedConnection } from '../../../users/connection-check.ts';
import type { DatabaseUser } from '../../../users/database-user.ts';
import { usernameRefusal } from '../../../users/signup.ts';
import type { User } from '../../../users/user.ts';
import type { TenantUsers } from '../../../users/users.ts';
import { userEvents } from '../../../users/users-declaration.ts';
import { conflictReason, mirroredIn } from '../database/custom/custom-user.ts';
import type { CustomDatabases } from '../database/custom/database-custom.ts';
import { connectionsFor } from '../resolve.ts';
import { strategyOf } from '../strategies.ts';
import { userOf as userFromProvider } from '../upstream/upstream-login-user.ts';

export interface ExchangedUserDependencies {
  config: Config;
  /** Without administrators: an action can neither name one nor read one. */
  users: TenantUsers;
  events: Events;
  /** External user databases, which the connections' scripts query. */
  customDatabases: CustomDatabases;
  /** Sends the verification e-mail for a new address, if the tenant sends one. */
  askToVerify(user: User, connection: Connection, clientId: string | undefined, ip: string): Promise<void>;
}

export interface NamedUser {
  user: User;
  /** Empty for a user who was named by their id: nobody has logged in with a connection. */
  connection: string;
}

/**
 * Returns the user that an action named; a user of a connection is created or updated if the action asks for it.
 * @throws AuthError 400 if there is no such user, or it cannot be created or updated as asked; 403 if the user is blocked, who
 *   is not changed.
 */
export async function namedUser(
  deps: ExchangedUserDependencies,
  request: GrantRequest,
  reference: { id: string } | UserOfConnection,
): Promise<NamedUser> {
  if ('connection' in reference) return userOfConnection(deps, request, reference);
  const user = await deps.users.get(reference.id);
  if (user === undefined) throw invalid('The user does not exist.');
  refuseBlocked(user);
  return { user, connection: '' };
}

/** Rejects a blocked user with the error of any other login. */
function refuseBlocked({ blocked }: User): void {
  if (blocked === true) throw new AuthError(403, 'unauthorized', 'user is blocked');
}

async function userOfConnection(
  deps: ExchangedUserDependencies,
  request: GrantRequest,
  reference: UserOfConnection,
): Promise<NamedUser> {
  const connection = await connectionOf(deps, request.clientId, reference.connection);
  const id = upstreamIdOf(connection, reference.attributes.user_id);
  const find = () => deps.users.identityOf(connection.name, id);
  const identity =
    (await find()) ?? (await addUser(deps, request, { connection, id, reference })) ?? (await find());
  const user = identity && (await deps.users.get(identity.user_id));
  if (identity === undefined || user === undefined || identity.provider !== connection.strategy)
    throw invalid('The user does not exist.');
  refuseBlocked(user);
  const isOwn = !isLinked(identity) && originalUserId(identity) === user.id;
  const updated =
    reference.updateBehavior === 'replace' && isOwn
      ? await deps.users.update(user.id, replacement(user, reference.attributes))
      : user;
  return { user: updated ?? user, connection: connection.name };
}

/** @throws AuthError 400 if it is not the application's, or its users cannot be set by an exchange. */
async function connectionOf(
  { config }: ExchangedUserDependencies,
  clientId: string,
  name: string,
): Promise<Connection> {
  const enabled = await connectionsFor(config, clientId, undefined);
  const connection = enabled.find((one) => one.name === name);
  if (connection === undefined)
    throw invalid('The connection was not found or is not enabled for this application.');
  const record = strategyRecord(connection.strategy);
  if (record === undefined || record.proves !== undefined)
    throw invalid('Users of this connection cannot be set by a token exchange.');
  return connection;
}

/** Returns the part of the user's id that follows the strategy. */
function upstreamIdOf(connection: Connection, id: string): string {
  if (/[\p{Cc}|]/u.test(id)) throw invalid('The user_id is not valid.');
  if (strategyRecord(connection.strategy)?.isDatabase === true) return id;
  const strategy = strategyOf(connection);
  const isWithinStrategy = strategy?.page === 'redirect' && strategy.idsWithin === 'strategy';
  return isWithinStrategy ? id : `${connection.name}|${id}`;
}

interface NewUser {
  connection: Connection;
  /** @see upstreamIdOf */
  id: string;
  reference: UserOfConnection;
}

/**
 * Creates a user who is not stored here. An external database is queried first: a user that it has is stored instead.
 * @returns the new identity; undefined when the caller has to look it up.
 */
async function addUser(
  deps: ExchangedUserDependencies,
  request: GrantRequest,
  newUser: NewUser,
): Promise<Identity | undefined> {
  const { connection, id, reference } = newUser;
  const { customDatabases, users } = deps;
  const mode = await customDatabases.modeOf(connection);
  if (mode === undefined) return createUser(deps, request, newUser);
  // Without this script it is unknown whether the database already has the user.
  if (!(await customDatabases.finds(connection)))
    throw invalid('Users of this connection cannot be set by a token exchange.');
  const { email: identifier } = addressesOf(connection, reference.attributes);
  const databaseRequest = { connection, identifier, clientId: request.clientId, ip: request.ip };
  const conflictError = async (databaseUser: DatabaseUser) => {
    const reason = databaseUser.refusal ?? conflictReason(databaseUser);
    await customDatabases.recordRefusal(databaseRequest, 'get_user', reason);
    return invalid('The user does not exist.');
  };
  const databaseUser = await customDatabases.find(databaseRequest);
  if (databaseUser !== undefined) {
    // The database decides whose address it is. If the token has another id, it belongs to a different user.
    if (databaseUser.upstreamId !== id || databaseUser.refusal !== undefined)
      throw await conflictError(databaseUser);
    const stored =
      mode === 'moves'
        ? await users.move({ ...databaseUser, ...expectedConnection(connection) })
        : await users.mirror(mirroredIn(connection, databaseUser));
    if (stored === undefined) throw await conflictError(databaseUser);
    return undefined;
  }
  const identity = await createUser(deps, request, newUser);
  if (identity === undefined || identity.upstream_id === id) return identity;
  await customDatabases.recordRefusal(
    databaseRequest,
    'create',
    `it made ${id} under the id ${identity.upstream_id}`,
  );
  throw invalid('The user does not exist.');
}

/**
 * @returns undefined when the caller has to look the identity up: a concurrent request created it, or the connection is
 *   not a database.
 */
async function createUser(
  deps: ExchangedUserDependencies,
  request: GrantRequest,
  { connection, id, reference }: NewUser,
): Promise<Identity | undefined> {
  const { attributes, creationBehavior } = reference;
  if (creationBehavior === 'none') throw invalid('The user does not exist.');
  const { clientId, ip, ctx } = request;
  const { user_id, verify_email, ...profile } = attributes;
  if (strategyRecord(connection.strategy)?.isDatabase !== true) {
    const strategy = strategyOf(connection);
    const isSocial = strategy?.page === 'redirect' && strategy.isSocial;
    const idsWithin = id === user_id ? 'strategy' : 'connection';
    const providerStrategy = { name: connection.strategy as StrategyName, isSocial, idsWithin } as const;
    await userFromProvider(
      deps,
      { clientId, connection, strategy: providerStrategy, ip },
      { id: user_id, profile },
    );
    return undefined;
  }
  const created = await deps.users
    .create({
      identity: {
        ...expectedConnection(connection),
        provider: connection.strategy,
        upstreamId: id,
        addresses: addressesOf(connection, attributes),
        unique: uniqueIn(databaseOptions(connection)),
      },
      profile: { ...profileOf(attributes), email_verified: attributes.email_verified === true },
      asker: requestContextOf(ctx, clientId, request.params),
    })
    .catch((thrown: unknown) => {
      if (thrown instanceof UniqueKeyError) return undefined;
      throw thrown;
    });
  if (created === undefined) return undefined;
  // An existing user with this address is never taken over on the word of a token.
  // docs/understand/decisions/actions-scripts.md#setuserbyconnection-never-takes-over-an-existing-address
  if (!('user' in created)) throw invalid('The user already exists.');
  const { user, identity } = created;
  const details = { client_id: clientId, connection: connection.name, user_id: user.id, ip };
  deps.events.record({
    type: userEvents.ss,
    ...details,
    ...(user.email !== undefined && { user_name: user.email }),
  });
  if (verify_email !== false) await deps.askToVerify(user, connection, clientId, ip);
  return identity;
}

// The attributes of a user that an action of `custom-token-exchange` gives: what a new user gets, and what they replace.

/** Returns the error, 400, for a user that cannot be set as the action asks. */
const invalid = (description: string) => new AuthError(400, 'invalid_request', description);

/** @throws AuthError 400 for attributes that this connection does not take. */
function addressesOf(
  connection: Connection,
  { email: address, username, phone_number }: ExchangedAttributes,
) {
  const email = normalizeEmail(address ?? '');
  if (email === undefined) throw invalid('The user needs an e-mail address.');
  // A phone number must be verified at this server; a token's claim is not enough.
  if (phone_number != null) throw invalid('phone_number cannot be set for this connection.');
  if (username == null) return { email };
  const options = databaseOptions(connection);
  if (!attributesOf(options).username.isIdentifier || usernameRefusal(options, username) !== undefined)
    throw invalid('username cannot be set for this connection.');
  return { email, username: username.trim().toLowerCase() };
}

const PROFILE = ['name', 'given_name', 'family_name', 'nickname', 'picture'] as const;

/** @throws AuthError 400 for a picture that is no URI. */
function profileOf(attributes: ExchangedAttributes): Partial<Record<(typeof PROFILE)[number], string>> {
  const { picture } = attributes;
  if (picture != null && !/^https?:\/\//i.test(picture)) throw invalid('picture must be a URI.');
  return Object.fromEntries(
    PROFILE.flatMap((one) => (attributes[one] == null ? [] : [[one, attributes[one]]])),
  );
}

/** Returns the changes that replace a user's profile. @throws AuthError 400 if the attributes would change an identifier. */
function replacement(user: User, attributes: ExchangedAttributes): Partial<UserRecord> {
  const { email, username, phone_number, email_verified, phone_verified } = attributes;
  const identifiers = {
    email: email == null ? undefined : (normalizeEmail(email) ?? email),
    username: username?.trim().toLowerCase(),
    phone_number: phone_number ?? undefined,
    email_verified: email_verified ?? user.email_verified,
    phone_verified: phone_verified ?? user.phone_verified,
  };
  const changedField = (Object.keys(identifiers) as (keyof typeof identifiers)[]).find(
    (one) => identifiers[one] !== user[one],
  );
  if (changedField !== undefined)
    throw invalid(`The user's ${changedField} cannot be changed by a token exchange.`);
  const emptyProfile = Object.fromEntries(PROFILE.map((one) => [one, undefined]));
  return { ...emptyProfile, ...profileOf(attributes) };
}
