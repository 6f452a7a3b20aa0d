// The routes of /dbconnections/* (docs/wire/database.md).
import type { Context } from 'koa';
import type { Logger } from 'pino';
import { z } from 'zod';
import type { RateLimits } from '../../../capabilities/protection/rate-limit.ts';
import { requestContextOf } from '../../../engine/action-event.ts';
import { languagesOf } from '../../../http/languages.ts';
import { type RouteDeclarations, withBody } from '../../../http/routes.ts';
import type { Connection } from '../../../records/collections.ts';
import { normalizeEmail } from '../../../records/email.ts';
import type { Config } from '../../../tenant/config.ts';
import type { Events } from '../../../tenant/events.ts';
import type { Profile } from '../../../users/create.ts';
import type { Identity } from '../../../users/identities.ts';
import { type SignUpRefusal, signUp } from '../../../users/signup.ts';
import type { User } from '../../../users/user.ts';
import type { Users } from '../../../users/users.ts';
import { byOwnPassword, resolveConnection } from '../resolve.ts';
import { type ChangePasswordBody, CONFIRMATION, changePasswordBody } from './change-password.ts';
import { LegacyError, legacyShape, signUpError } from './errors.ts';
import type { RequestReset } from './reset-link.ts';
import { type SignUpBody, signUpAnswer, signUpBody } from './signup.ts';
import { askNewUserToVerify, type VerificationDependencies } from './verification-link.ts';

export interface DatabaseDependencies extends VerificationDependencies {
  config: Config;
  users: Users;
  events: Events;
  rateLimits: RateLimits;
  requestReset: RequestReset;
  log: Logger;
}

const api = { limit: 'other', cors: 'applications', errors: legacyShape } as const;

/** The routes of database connections. */
export const databaseRoutes: RouteDeclarations<DatabaseDependencies> = {
  'POST /dbconnections/signup': {
    ...api,
    furtherLimits: ['signup'],
    summary: 'Sign up',
    answers: { 200: { description: 'The new user, with its id', body: signUpAnswer } },
    ...withBody(signUpBody, handleSignUp),
  },
  'POST /dbconnections/change_password': {
    ...api,
    summary: 'Send a link to set a new password',
    answers: {
      200: {
        description: 'The answer is the same whether or not the user exists',
        body: z.string(),
        type: 'text/html',
      },
    },
    ...withBody(changePasswordBody, handleChangePassword),
  },
};

async function handleSignUp(deps: DatabaseDependencies, ctx: Context, body: SignUpBody): Promise<void> {
  const connection = await databaseOf(deps.config, body);
  const { email, password, username, phone_number } = body;
  const result = await signUp(deps.users, {
    connection,
    email,
    password,
    username,
    phone_number,
    profile: profileOf(body),
    asker: requestContextOf(ctx, body.client_id, body),
  });
  const details = {
    connection: connection.name,
    user_name: email ?? username ?? phone_number ?? '',
    ip: ctx.ip,
    ...(body.client_id && { client_id: body.client_id }),
  };
  if (!('user' in result)) {
    deps.events.record({ ...details, type: 'fs', description: result.reason });
    throw refusalError(deps.config, connection, result);
  }
  deps.events.record({ ...details, type: 'ss', user_id: result.user.id });
  const client = body.client_id === undefined ? undefined : await deps.config.client(body.client_id);
  await askNewUserToVerify(deps, {
    user: result.user,
    connection,
    client,
    languages: languagesOf(ctx),
    ip: ctx.ip,
  });
  ctx.body = signUpResult(result, body);
}

async function handleChangePassword(
  deps: DatabaseDependencies,
  ctx: Context,
  body: ChangePasswordBody,
): Promise<void> {
  const { email, client_id: clientId, organization: organizationName } = body;
  await deps.rateLimits.takeFrom(ctx, 'changePassword', normalizeEmail(email));
  const connection = await databaseOf(deps.config, body);
  const organization =
    organizationName === undefined ? undefined : await deps.config.organization(organizationName);
  if (organizationName !== undefined && organization === undefined) {
    throw new LegacyError(400, { error: 'organization not found' });
  }
  const client = clientId === undefined ? undefined : await deps.config.client(clientId);
  const caller = { ip: ctx.ip };
  await deps.requestReset({ email, connection, client, organization, languages: languagesOf(ctx), caller });
  ctx.set('Cache-Control', 'no-store');
  ctx.type = 'text/html; charset=utf-8';
  ctx.body = CONFIRMATION;
}

function refusalError(config: Config, connection: Connection, refusal: SignUpRefusal): LegacyError {
  const { flags } = config.settings().tenant;
  return signUpError(refusal, connection, flags.enable_public_signup_user_exists_error === true);
}

/** @throws LegacyError 400 if there is no such database connection, or it is not enabled for the application. */
async function databaseOf(
  config: Config,
  { connection: name, client_id: clientId }: Pick<SignUpBody, 'connection' | 'client_id'>,
): Promise<Connection> {
  const found = await resolveConnection(config, { clientId, connection: name }, byOwnPassword);
  if ('strategy' in found) return found.connection;
  throw new LegacyError(400, {
    error: 'connection not found',
    code: 'connection_not_found',
    statusCode: 400,
  });
}

function profileOf({ given_name, family_name, name, nickname, picture, user_metadata }: SignUpBody): Profile {
  return Object.fromEntries(
    Object.entries({ given_name, family_name, name, nickname, picture, user_metadata }).filter(
      ([, v]) => v !== undefined,
    ),
  );
}

/** Returns the response to a sign-up (docs/wire/database.md): what was sent, and the id without its strategy prefix. */
function signUpResult(
  { user, identity }: { user: User; identity: Identity },
  body: SignUpBody,
): Record<string, unknown> {
  return {
    _id: identity.upstream_id,
    email_verified: user.email_verified,
    ...(user.email !== undefined && { email: user.email }),
    ...(user.username !== undefined && { username: user.username }),
    ...(user.phone_number !== undefined && {
      phone_number: user.phone_number,
      phone_verified: user.phone_verified === true,
    }),
    ...profileOf(body),
  };
}
