// POST /otp/challenge: a code by e-mail for a database connection (docs/wire/passwordless.md).
import type { Context } from 'koa';
import { z } from 'zod';
import { grantTypeOf } from '../../engine/tokens.ts';
import { CLIENT_FIELDS, optional, unchecked } from '../../http/described.ts';
import { AuthError } from '../../http/errors.ts';
import { languagesOf } from '../../http/languages.ts';
import type { Client, Connection } from '../../records/collections.ts';
import { normalizeEmail } from '../../records/email.ts';
import type { Config } from '../../tenant/config.ts';
import type { PasswordlessConnection } from './connection.ts';
import { email as byEmail } from './email.ts';
import { OTP_GRANT } from './grant.ts';
import {
  codeConnection,
  isProvedOwner,
  type KeptSession,
  mayMakeUsers,
  SESSION_PURPOSE,
} from './session-code.ts';
import { type StartDependencies, start } from './start.ts';

/** What POST /otp/challenge may carry. */
export const sessionBody = z.object({
  ...CLIENT_FIELDS,
  connection: optional("The name of a database connection; the application's own where none is named."),
  email: optional('Where the code goes.'),
  phone_number: unchecked('Not enabled for any connection.'),
  allow_signup: z.boolean().optional().describe('Whether somebody new is made a user.'),
  delivery_method: unchecked('Of a phone number.'),
});

/** What it answers, whoever the address belongs to. */
export const sessionAnswer = z.object({
  auth_session: z.string().describe('For the grant, with the code that was sent.'),
});

interface SessionDependencies extends StartDependencies {
  config: Config;
  authenticateClient(ctx: Context): Promise<string>;
}

const DIGITS = 6;
const SECONDS = 180;

/** Sends a code to a user of a database, or to whom may sign up; without telling which. */
export async function handleSession(
  deps: SessionDependencies,
  ctx: Context,
  { connection: realm, email, phone_number: phone, allow_signup: allow }: z.output<typeof sessionBody>,
): Promise<void> {
  ctx.set('Cache-Control', 'no-store');
  const client = await clientOf(deps, ctx);
  if (phone !== undefined)
    throw new AuthError(400, 'invalid_request', 'Codes by phone are not enabled for the connection.');
  const address = normalizeEmail(email ?? '');
  if (address === undefined)
    throw new AuthError(400, 'invalid_request', 'email must be an e-mail address.', {
      extra: { validation_errors: [{ detail: 'Not an e-mail address.', field: 'email' }] },
    });
  const record = await codeConnection(deps.config, client.client_id, realm);
  const mayCreate = allow === true && mayMakeUsers(record);
  const data: KeptSession = { clientId: client.client_id, connection: record.name, address, mayCreate };
  const auth_session = await start(deps, ctx, {
    client,
    connection: codesOf(record, mayCreate),
    address,
    session: { purpose: SESSION_PURPOSE, data: { ...data }, isFor: (user) => isProvedOwner(user, address) },
    caller: { ip: ctx.ip },
    languages: languagesOf(ctx),
  });
  ctx.body = { auth_session };
}

/** The connection as one by which codes are sent. */
function codesOf(record: Connection, mayCreate: boolean): PasswordlessConnection {
  return { record, strategy: byEmail, digits: DIGITS, ttlSeconds: SECONDS, disableSignup: !mayCreate };
}

/** @throws AuthError 401; 403 for an application without the grant. */
async function clientOf({ config, authenticateClient }: SessionDependencies, ctx: Context): Promise<Client> {
  const client = await config.client(await authenticateClient(ctx));
  const grantType = grantTypeOf(OTP_GRANT, config.settings().vendor_host);
  if (client?.grant_types?.includes(grantType) === true) return client;
  throw new AuthError(403, 'unauthorized_client', `Grant type '${grantType}' not allowed for the client.`);
}
