// The passkey grant (docs/reference/wire/passkeys.md): completes a login or a sign-up that an application began.
import { z } from 'zod';
import {
  readAssertion,
  readRegistration,
  verifyRegistration,
} from '../../../capabilities/webauthn/ceremonies.ts';
import { relyingPartyFor } from '../../../capabilities/webauthn/relying-party.ts';
import { requestContextOf } from '../../../engine/login/login-event.ts';
import type { GrantDeclaration, GrantRequest } from '../../../engine/token/tokens.ts';
import { AuthError } from '../../../http/errors.ts';
import { languagesOf } from '../../../http/languages.ts';
import { optional, required } from '../../../http/parameter-schemas.ts';
import { requiredField } from '../../../http/server/body.ts';
import type { Connection } from '../../../records/collections.ts';
import { identityOfNew } from '../../../records/new-identity.ts';
import { epochSeconds } from '../../../runtime/clock.ts';
import type { Random } from '../../../runtime/secrets.ts';
import type { Config } from '../../../tenant/config.ts';
import type { Events } from '../../../tenant/events.ts';
import { FIRST_VERSION, type Login } from '../../../users/login.ts';
import { signUpRefusal } from '../../../users/signup.ts';
import type { Users } from '../../../users/users.ts';
import { userEvents } from '../../../users/users-declaration.ts';
import { askNewUserToVerify, type VerificationDependencies } from '../database/base/verification-link.ts';
import type { ProvedUser } from '../strategy.ts';
import {
  isRegistered,
  type PasskeyDependencies,
  passkeyRegistration,
  passkeyWrite,
  verifyPasskey,
} from './passkeys.ts';
import { passkeyEvents } from './passkeys-declaration.ts';
import { PASSKEY_GRANT, passkeyConnection } from './passkeys-routes.ts';
import {
  displayNameOf,
  type PasskeySession,
  type SessionDependencies,
  takeSession,
} from './passkeys-session.ts';

export interface PasskeyGrantDependencies
  extends PasskeyDependencies,
    SessionDependencies,
    VerificationDependencies {
  config: Config;
  events: Events;
  random: Random;
  users: Users;
}

/** Possession of the passkey, and the user verification that it performed: two factors (RFC 8176 §2). */
const PASSKEY_AMR = ['pop', 'user', 'mfa'] as const;

const invalidPasskey = () => new AuthError(403, 'invalid_grant', 'The passkey is not good for this login.');

export const passkeyGrant: GrantDeclaration<PasskeyGrantDependencies> = {
  grantType: PASSKEY_GRANT,
  summary: 'A passkey: a login, or the sign-up that `/passkey/register` began',
  parameters: z.object({
    auth_session: required('The value from `/passkey/challenge` or `/passkey/register`.'),
    authn_response: required("The authenticator's answer, in JSON."),
    realm: optional('The connection of the request that began the login or sign-up.'),
  }),
  gty: 'webauthn',
  events: { failure: passkeyEvents.fepk },
  authenticate: async (deps, request) => {
    const { clientId, params } = request;
    const response = requiredField(params, 'authn_response');
    const ceremony = await takeSession(deps, requiredField(params, 'auth_session'), clientId);
    if (ceremony === undefined) throw new AuthError(403, 'invalid_grant', 'Invalid or expired auth_session.');
    const { session, challenge } = ceremony;
    if (session.owner !== undefined) throw invalidPasskey();
    if (params.realm !== undefined && params.realm !== session.connection) throw invalidPasskey();
    // Passkeys may have been switched off for the connection since the ceremony began.
    const connection = await passkeyConnection(deps.config, clientId, session.connection);
    const { newUser, at } = session;
    const user =
      newUser === undefined
        ? await logIn(deps, request, { response, challenge, connection, at })
        : await signUp(deps, request, { response, challenge, connection, at, newUser });
    return {
      login: { ...user, connection: connection.name, ip: request.ip, ...passkeyAuthentication(deps) },
    };
  },
};

/** Returns the authentication methods, the presence and the time of a login with a passkey. */
export function passkeyAuthentication({
  wallClock,
}: Pick<PasskeyDependencies, 'wallClock'>): Pick<Login, 'amr' | 'presence' | 'authTime'> {
  return { amr: PASSKEY_AMR, presence: 'present', authTime: epochSeconds(wallClock) };
}

interface CeremonyResponse {
  /** The authenticator's response, JSON. */
  response: string;
  challenge: string;
  connection: Connection;
  /** @see PasskeySession.at */
  at: string | undefined;
}

async function logIn(
  deps: PasskeyGrantDependencies,
  { clientId }: GrantRequest,
  { response, challenge, connection, at }: CeremonyResponse,
): Promise<ProvedUser> {
  const assertion = readAssertion(response);
  const client = await deps.config.client(clientId);
  if (assertion === undefined || client === undefined) throw invalidPasskey();
  const verified = await verifyPasskey(deps, relyingPartyFor(deps, client, at), assertion, challenge);
  if (verified === undefined || verified.passkey.connection !== connection.name) throw invalidPasskey();
  return { userId: verified.user.id, credentialVersion: verified.credentialVersion };
}

async function signUp(
  deps: PasskeyGrantDependencies,
  { clientId, ctx }: GrantRequest,
  {
    response,
    challenge,
    connection,
    at,
    newUser,
  }: CeremonyResponse & Required<Pick<PasskeySession, 'newUser'>>,
): Promise<ProvedUser> {
  const registration = readRegistration(response);
  const client = await deps.config.client(clientId);
  if (registration === undefined || client === undefined) throw invalidPasskey();
  const { handle, profile, ...typed } = newUser;
  const expected = passkeyRegistration(challenge, handle, displayNameOf(typed));
  const party = relyingPartyFor(deps, client, at);
  const credential = await verifyRegistration(party, registration, expected);
  if (credential === undefined) throw invalidPasskey();
  const details = {
    client_id: clientId,
    connection: connection.name,
    user_name: typed.email ?? displayNameOf(typed),
    ip: ctx.ip,
  };
  const refuse = (description: string) => {
    deps.events.record({ ...details, type: userEvents.fs, description });
    return new AuthError(400, 'invalid_request', 'Invalid sign up');
  };
  // The connection's rules may have changed since the ceremony began.
  const refusal = signUpRefusal(connection, typed);
  if (refusal !== undefined) throw refuse(refusal.reason);
  const owner = {
    connection: connection.name,
    userAgent: ctx.get('User-Agent'),
    registration: expected,
    party,
  };
  const creating = deps.users.create({
    identity: identityOfNew(connection, typed),
    profile,
    asker: requestContextOf(ctx, clientId, typed),
    // In one batch: an account without the passkey would have no way in, and would keep its address taken.
    also: ({ id }) => [passkeyWrite(deps, credential, { ...owner, user_id: id })],
  });
  const result = await creating.catch((thrown: unknown) => {
    throw isRegistered(thrown) ? refuse('the credential is somebody’s already') : thrown;
  });
  if (!('user' in result)) throw refuse('taken');
  const { user } = result;
  deps.events.record({ ...details, type: userEvents.ss, user_id: user.id });
  await askNewUserToVerify(deps, { user, connection, client, languages: languagesOf(ctx), ip: ctx.ip });
  // The version of a new user: if a password is set meanwhile, the login ends.
  return { userId: user.id, credentialVersion: FIRST_VERSION };
}
