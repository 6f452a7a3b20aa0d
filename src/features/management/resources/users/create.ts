// `POST /users`: creating a user.

import type { Connection } from '../../../../records/collections.ts';
import { strategyRecord } from '../../../../records/connections.ts';
import { attributesOf, identifiersOf, uniqueIn } from '../../../../records/database-attributes.ts';
import { canMakeUsers, databaseOptions, passwordUse } from '../../../../records/database-options.ts';
import { ADDRESS_KINDS } from '../../../../records/identities.ts';
import { addressesOfNew } from '../../../../records/new-identity.ts';
import type { UserRecord } from '../../../../records/users.ts';
import { UniqueKeyError } from '../../../../store/contract.ts';
import { expectedConnection } from '../../../../users/connection-check.ts';
import { RegistrationRefused } from '../../../../users/registration.ts';
import { passwordRefusal } from '../../../../users/signup.ts';
import type { User } from '../../../../users/user.ts';
import { apiError } from '../../errors.ts';
import { conflict } from '../../resource.ts';
import { type CreateUserBody, mergedMetadata } from './bodies.ts';
import {
  askerOf,
  invalid,
  passwordError,
  profileOf,
  type RequestOrigin,
  requireValidUsername,
  type UsersDependencies,
} from './user.ts';

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
export async function createUser(
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
