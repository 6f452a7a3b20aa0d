// POST /otp/challenge: a code by e-mail or SMS for a database connection (docs/reference/wire/passwordless.md).
import type { Context } from 'koa';
import { z } from 'zod';
import { grantTypeOf } from '../../../engine/token/tokens.ts';
import { AuthError } from '../../../http/errors.ts';
import { languagesOf } from '../../../http/languages.ts';
import { CLIENT_FIELDS, optional } from '../../../http/parameter-schemas.ts';
import type { Client, Connection } from '../../../records/collections.ts';
import type { CodeKind } from '../../../records/database-options.ts';
import type { Config } from '../../../tenant/config.ts';
import type { User } from '../../../users/user.ts';
import type { PasswordlessConnection } from './connection.ts';
import { OTP_GRANT } from './passwordless-grant.ts';
import { type StartDependencies, start } from './passwordless-start.ts';
import {
  codeConnection,
  isProvedOwner,
  mayCreateUser,
  SESSION_PURPOSE,
  type StoredSession,
  strategyFor,
} from './session-code.ts';

export const sessionBody = z.object({
  ...CLIENT_FIELDS,
  connection: optional('The name of a database connection; by default the connection of the application.'),
  email: optional('The e-mail address that the code is sent to.'),
  phone_number: optional(
    'The phone number that the code is sent to, in E.164, instead of `email`, if the connection has phone numbers as identifiers.',
  ),
  allow_signup: z.boolean().optional().describe('Whether a new user may be created.'),
  delivery_method: z.enum(['text', 'voice']).optional().describe('For a phone number: `text`.'),
});

// docs/understand/decisions/users-linking.md#a-code-on-the-login-page-does-not-create-a-user
/** The response of POST /otp/challenge, the same whether the address has a user or not. */
export const sessionAnswer = z.object({
  auth_session: z.string().describe('For the grant, with the code that was sent.'),
});

interface SessionDependencies extends StartDependencies {
  config: Config;
  authenticateClient(ctx: Context): Promise<string>;
}

// docs/understand/decisions/passwordless-messages.md#a-second-code-on-the-hosted-page-can-be-requested-after-30-seconds
/** Seconds until another code can be requested. Pages count them down; the rate limit enforces them. */
export const RESEND_SECONDS = 30;

const CODE_DIGITS = 6;
const CODE_SECONDS = 180;

/** `POST /otp/challenge`: sends a code to a user, or to an address that may sign up. The response does not tell which. */
export async function handleSession(
  deps: SessionDependencies,
  ctx: Context,
  { body }: { body: z.output<typeof sessionBody> },
): Promise<void> {
  ctx.set('Cache-Control', 'no-store');
  const client = await clientOf(deps, ctx);
  const { kind, address } = addressOf(body);
  const record = await codeConnection(deps.config, client.client_id, { realm: body.connection, kind });
  const auth_session = await beginSession(deps, ctx, {
    client,
    record,
    kind,
    address,
    allowsSignUp: body.allow_signup === true,
    caller: { ip: ctx.ip },
    languages: languagesOf(ctx),
  });
  ctx.body = { auth_session };
}

interface SessionRequest extends Pick<Parameters<typeof start>[2], 'client' | 'caller' | 'languages'> {
  record: Connection;
  kind: CodeKind;
  address: string;
  /** Whether the request allows the code to create a user; the connection must allow it, too. */
  allowsSignUp: boolean;
}

/** Sends a code. @returns the ticket that it is valid with. @throws AuthError as {@link start}. */
export function beginSession(
  deps: StartDependencies,
  ctx: Context,
  { client, record, kind, address, allowsSignUp, caller, languages }: SessionRequest,
): Promise<string | undefined> {
  const mayCreate = allowsSignUp && mayCreateUser(record, kind, address);
  const data: StoredSession = {
    clientId: client.client_id,
    connection: record.name,
    kind,
    address,
    mayCreate,
  };
  const mayReceive = (user: User) => isProvedOwner(user, kind, address);
  return start(deps, ctx, {
    client,
    connection: asPasswordless(record, kind, mayCreate),
    address,
    session: { purpose: SESSION_PURPOSE, data: { ...data }, mayReceive },
    caller,
    languages,
  });
}

/** Returns the address to send the code to. @throws AuthError 400 if there is none, there are both kinds, or it is invalid. */
function addressOf({ email, phone_number: phone, delivery_method: method }: z.output<typeof sessionBody>): {
  kind: CodeKind;
  address: string;
} {
  if (email !== undefined && phone !== undefined)
    throw new AuthError(400, 'invalid_request', 'Either email or phone_number must be provided, not both.');
  const kind = phone === undefined ? 'email' : 'phone_number';
  if (kind === 'phone_number' && method === 'voice')
    throw new AuthError(400, 'invalid_request', 'Codes by voice are not enabled for the connection.');
  const address = strategyFor(kind).normalize(phone ?? email ?? '');
  if (address !== undefined) return { kind, address };
  throw new AuthError(400, 'invalid_request', INVALID_ADDRESS[kind].message, {
    extra: { validation_errors: [{ detail: INVALID_ADDRESS[kind].detail, field: kind }] },
  });
}

const INVALID_ADDRESS = {
  email: { message: 'email must be an e-mail address.', detail: 'Not an e-mail address.' },
  phone_number: {
    message: 'phone_number must be a phone number with its country code.',
    detail: 'Not a phone number.',
  },
};

/** Returns a database connection in the form of a passwordless one, which sends its codes. */
export function asPasswordless(
  record: Connection,
  kind: CodeKind,
  mayCreate: boolean,
): PasswordlessConnection {
  return {
    record,
    strategy: strategyFor(kind),
    digits: CODE_DIGITS,
    ttlSeconds: CODE_SECONDS,
    disableSignup: !mayCreate,
  };
}

/** @throws AuthError 401; 403 for an application without the grant. */
async function clientOf({ config, authenticateClient }: SessionDependencies, ctx: Context): Promise<Client> {
  const client = await config.client(await authenticateClient(ctx));
  const grantType = grantTypeOf(OTP_GRANT, config.settings().vendor_host);
  if (client?.grant_types?.includes(grantType) === true) return client;
  throw new AuthError(403, 'unauthorized_client', `Grant type '${grantType}' not allowed for the client.`);
}
