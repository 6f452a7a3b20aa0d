// Database connections: login with a password, sign-up, password reset, verification of e-mail addresses.

import type { Context } from 'koa';
import type { Logger } from 'pino';
import { z } from 'zod';
import type { RateLimits } from '../../../capabilities/protection/rate-limit.ts';
import { requestContextOf } from '../../../engine/login/login-event.ts';
import { feature } from '../../../engine/provider/feature.ts';
import { languagesOf } from '../../../http/languages.ts';
import { httpLimits } from '../../../http/limits.ts';
import { type RouteDeclarations, route } from '../../../http/server/router.ts';
import { normalizeEmail } from '../../../records/base/email.ts';
import type { Connection } from '../../../records/collections.ts';
import type { Config } from '../../../tenant/config.ts';
import type { Events } from '../../../tenant/events.ts';
import type { Identity } from '../../../users/changes.ts';
import type { Profile } from '../../../users/create.ts';
import { type SignUpRefusal, signUp } from '../../../users/signup.ts';
import type { User } from '../../../users/user.ts';
import type { Users } from '../../../users/users.ts';
import { userEvents } from '../../../users/users-declaration.ts';
import { byOwnPassword, resolveConnection } from '../resolve.ts';
import { databaseEvents, databaseLimits } from './base/database-declaration.ts';
import { LegacyError, legacyShape, signUpError, typeFault } from './base/database-errors.ts';
import type { PasswordPagesDependencies } from './base/form-dependencies.ts';
import { askNewUserToVerify, type VerificationDependencies } from './base/verification-link.ts';
import { type PasswordGrantDependencies, passwordGrants } from './database-grant.ts';
import { passwordPages } from './database-hosted.ts';
import {
  type AccountPagesDependencies,
  accountPages,
  forgotPages,
  verificationPages,
} from './mailed-links/account-pages.ts';
import type { RequestReset } from './mailed-links/reset-link.ts';
import { signUpCodePages } from './sign-up/sign-up-codes.ts';
import { type SignUpBody, signUpAnswer, signUpBody } from './sign-up/signup.ts';
import { type UnblockDependencies, unblockRoutes } from './unblock.ts';
import { type UsernamePasswordDependencies, usernamePasswordRoutes } from './username-password.ts';

// The routes of /dbconnections/* (docs/reference/wire/database.md).

// The body of POST /dbconnections/change_password (docs/reference/wire/database.md).

/** The response body, the same whether the user exists or not. SDKs compare it byte for byte. */
const CONFIRMATION = "We've just sent you an email to reset your password.";

const text = (field: string) =>
  z
    .string({ error: typeFault(field) })
    .min(1, `${field} is required`)
    .max(300, `${field} must be at most 300 characters`);

/** The schema of the body. A `password`, which old clients send, is ignored. */
const changePasswordBody = z
  .object({
    client_id: text('client_id')
      .optional()
      .describe('The application; the connection must be enabled for it.'),
    connection: text('connection').describe('The name of a database connection.'),
    email: text('email'),
    organization: text('organization').optional().describe('The organization for the link, by id or name.'),
  })
  .refine(({ email }) => normalizeEmail(email) !== undefined, {
    message: 'email format validation failed',
    path: ['email'],
  });

type ChangePasswordBody = z.output<typeof changePasswordBody>;

interface DatabaseDependencies extends VerificationDependencies {
  config: Config;
  users: Users;
  events: Events;
  rateLimits: RateLimits;
  requestReset: RequestReset;
  log: Logger;
}

const api = { limit: httpLimits.other, cors: 'applications', errors: legacyShape } as const;

const databaseRoutes: RouteDeclarations<DatabaseDependencies> = {
  'POST /dbconnections/signup': route({
    ...api,
    furtherLimits: [databaseLimits.signup],
    summary: 'Sign up',
    answers: { 200: { description: 'The new user, with its id', body: signUpAnswer } },
    body: signUpBody,
    handle: handleSignUp,
  }),
  'POST /dbconnections/change_password': route({
    ...api,
    summary: 'Send a link to set a new password',
    answers: {
      200: {
        description: 'The answer is the same whether or not the user exists',
        body: z.string(),
        type: 'text/html',
      },
    },
    body: changePasswordBody,
    handle: handleChangePassword,
  }),
};

async function handleSignUp(
  deps: DatabaseDependencies,
  ctx: Context,
  { body }: { body: SignUpBody },
): Promise<void> {
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
    deps.events.record({ ...details, type: userEvents.fs, description: result.reason });
    throw refusalError(deps.config, connection, result);
  }
  deps.events.record({ ...details, type: userEvents.ss, user_id: result.user.id });
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
  { body }: { body: ChangePasswordBody },
): Promise<void> {
  const { email, client_id: clientId, organization: organizationName } = body;
  await deps.rateLimits.takeFrom(ctx, databaseLimits.changePassword, normalizeEmail(email));
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

/** Returns the response to a sign-up (docs/reference/wire/database.md): what was sent, and the id without its prefix. */
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

interface DatabaseFeatureDependencies
  extends DatabaseDependencies,
    AccountPagesDependencies,
    PasswordPagesDependencies,
    UsernamePasswordDependencies,
    UnblockDependencies {}

export const database = feature<DatabaseFeatureDependencies, PasswordGrantDependencies>({
  name: 'database',
  limits: databaseLimits,
  events: databaseEvents,
  grants: passwordGrants,
  routes: {
    ...databaseRoutes,
    ...accountPages,
    ...forgotPages,
    ...verificationPages,
    ...passwordPages,
    ...signUpCodePages,
    ...usernamePasswordRoutes,
    ...unblockRoutes,
  },
});
