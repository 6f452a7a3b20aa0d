// POST /passkey/register and /passkey/challenge: SDKs of applications request the WebAuthn options there, and then call the
// authenticator (docs/reference/wire/passkeys.md).
import type { Context } from 'koa';
import { z } from 'zod';
import { creationOptions, requestOptions } from '../../../capabilities/webauthn/ceremonies.ts';
import { customOrigin, relyingPartyFor } from '../../../capabilities/webauthn/relying-party.ts';
import { AuthError, oauthShape } from '../../../http/errors.ts';
import { CLIENT_FIELDS, optional } from '../../../http/parameter-schemas.ts';
import { type RouteDeclarations, route } from '../../../http/server/router.ts';
import type { Client, Connection } from '../../../records/collections.ts';
import { passkeyOptions } from '../../../records/database-options.ts';
import type { Config } from '../../../tenant/config.ts';
import type { Profile } from '../../../users/create.ts';
import { type SignUpRefusal, signUpRefusal } from '../../../users/signup.ts';
import { databaseLimits } from '../database/base/database-declaration.ts';
import { signUpFields } from '../database/sign-up/signup.ts';
import { databaseFor } from '../resolve.ts';
import { PASSKEY_VERIFICATION, passkeyRegistration } from './passkeys.ts';
import { passkeyLimits } from './passkeys-declaration.ts';
import { beginSession, displayNameOf, type SessionDependencies } from './passkeys-session.ts';

/** The grant type that completes a ceremony begun here. */
export const PASSKEY_GRANT = 'urn:okta:params:oauth:grant-type:webauthn';

export interface PasskeyRoutesDependencies extends SessionDependencies {
  baseUrl: string;
  config: Config;
  /** @returns its client_id. */
  authenticateClient(ctx: Context): Promise<string>;
}

const requestFields = {
  ...CLIENT_FIELDS,
  realm: optional('The name of a database connection; by default the connection of the application.'),
  organization: optional('The organization that the login is for; it is checked when the grant is used.'),
};
const challengeBody = z.object(requestFields);
const { email, username, phone_number, name, given_name, family_name, nickname, picture, user_metadata } =
  signUpFields;
const registerBody = z.object({
  ...requestFields,
  user_profile: z.object({ email, username, phone_number, name, given_name, family_name, nickname, picture }),
  user_metadata,
});

const answer = z.object({
  auth_session: z.string().describe('For one use of the grant, within five minutes.'),
  authn_params_public_key: z
    .looseObject({})
    .describe('For `navigator.credentials`, as WebAuthn Level 3 §5.1.10 and §5.1.11 have it in JSON.'),
});

const api = { limit: passkeyLimits.passkey, cors: 'applications', errors: oauthShape } as const;

export const passkeyRoutes: RouteDeclarations<PasskeyRoutesDependencies> = {
  'POST /passkey/challenge': route({
    ...api,
    summary: 'Begin a login with a passkey',
    security: ['client'],
    answers: { 200: { description: 'The options for the authenticator', body: answer } },
    body: challengeBody,
    handle: beginLogin,
  }),
  'POST /passkey/register': route({
    ...api,
    furtherLimits: [databaseLimits.signup],
    summary: 'Begin to sign up with a passkey',
    security: ['client'],
    answers: { 200: { description: 'The options for the authenticator', body: answer } },
    body: registerBody,
    handle: beginSignUp,
  }),
};

async function beginLogin(
  deps: PasskeyRoutesDependencies,
  ctx: Context,
  { body: { realm } }: { body: z.output<typeof challengeBody> },
): Promise<void> {
  const { client, connection } = await authenticateRequest(deps, ctx, realm);
  const { client_id: clientId } = client;
  const at = customOrigin(ctx);
  const { authSession, challenge } = await beginSession(deps, { clientId, connection: connection.name, at });
  // The options list no credentials, because that would reveal who has an account.
  const options = requestOptions(relyingPartyFor(deps, client, at), challenge, PASSKEY_VERIFICATION);
  ctx.body = { auth_session: authSession, authn_params_public_key: options };
}

async function beginSignUp(
  deps: PasskeyRoutesDependencies,
  ctx: Context,
  { body }: { body: z.output<typeof registerBody> },
): Promise<void> {
  const { realm, user_profile, user_metadata: metadata } = body;
  const { client, connection } = await authenticateRequest(deps, ctx, realm);
  const { email: address, username: newUsername, phone_number: phone, ...claims } = user_profile;
  const typed = { email: address, username: newUsername, phone_number: phone };
  const refusal = signUpRefusal(connection, typed);
  if (refusal !== undefined) throw signUpFault(refusal);
  // A random handle, as the account does not exist yet (WebAuthn Level 3 §14.6.1).
  const handle = deps.random(32).toString('base64url');
  const profile = definedOf({ ...claims, user_metadata: metadata });
  const at = customOrigin(ctx);
  const { authSession, challenge } = await beginSession(deps, {
    clientId: client.client_id,
    connection: connection.name,
    at,
    newUser: { ...typed, handle, profile },
  });
  const registration = passkeyRegistration(challenge, handle, displayNameOf(typed));
  const options = creationOptions(relyingPartyFor(deps, client, at), registration);
  ctx.body = { auth_session: authSession, authn_params_public_key: options };
}

function definedOf(profile: { [Name in keyof Profile]?: Profile[Name] | undefined }): Profile {
  return Object.fromEntries(Object.entries(profile).filter(([, value]) => value !== undefined));
}

/** Returns the error of a refused sign-up. Only the grant, after the ceremony, refuses an address that is taken. */
function signUpFault({ reason }: SignUpRefusal): AuthError {
  return new AuthError(400, 'invalid_request', `Invalid sign up: ${reason}`);
}

/** Authenticates the application and returns it with the connection that it names. @throws AuthError 400, 401 or 403. */
async function authenticateRequest(
  deps: PasskeyRoutesDependencies,
  ctx: Context,
  realm: string | undefined,
): Promise<{ client: Client; connection: Connection }> {
  ctx.set('Cache-Control', 'no-store');
  const clientId = await deps.authenticateClient(ctx);
  const client = await deps.config.client(clientId);
  if (client?.grant_types?.includes(PASSKEY_GRANT) !== true)
    throw new AuthError(
      403,
      'unauthorized_client',
      `Grant type '${PASSKEY_GRANT}' not allowed for the client.`,
    );
  return { client, connection: await passkeyConnection(deps.config, clientId, realm) };
}

/** Returns the connection of a realm, or the application's default. @throws AuthError 400 if it has no passkeys. */
export async function passkeyConnection(
  config: Config,
  clientId: string,
  realm: string | undefined,
): Promise<Connection> {
  const { connection } = await databaseFor(config, { clientId, realm });
  if (passkeyOptions(connection) !== undefined) return connection;
  throw new AuthError(400, 'invalid_request', 'Passkeys are not enabled for the connection.');
}
