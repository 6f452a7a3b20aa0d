// The password grants (RFC 6749 §4.3): the tenant's default directory, or a named realm.
import { z } from 'zod';
import type { LimitLogin } from '../../../capabilities/protection/attempts.ts';
import type { GrantDeclaration, GrantedLogin, GrantRequest } from '../../../engine/token/tokens.ts';
import { AuthError } from '../../../http/errors.ts';
import { required } from '../../../http/parameter-schemas.ts';
import { requiredField } from '../../../http/server/body.ts';
import type { Config } from '../../../tenant/config.ts';
import { databaseFor } from '../resolve.ts';
import type { ProofDependencies } from '../strategy.ts';
import { databaseEvents } from './base/database-declaration.ts';

const EXCHANGE_EVENTS = { success: databaseEvents.sepft, failure: databaseEvents.fepft } as const;

export interface PasswordGrantDependencies extends ProofDependencies {
  config: Config;
  limitLogin: LimitLogin;
}

const credentials = {
  username: required('The e-mail address or username.'),
  password: required('The password.'),
};

export const passwordGrants: readonly GrantDeclaration<PasswordGrantDependencies>[] = [
  {
    grantType: 'password',
    summary: "A password, in the tenant's default directory",
    parameters: z.object(credentials),
    gty: 'password',
    givesTicket: true,
    events: EXCHANGE_EVENTS,
    authenticate: async (deps, request) => {
      const realm = deps.config.settings().tenant.default_directory;
      if (realm === undefined) {
        throw new AuthError(
          400,
          'invalid_request',
          'Authorization server not configured with default connection.',
        );
      }
      return authenticate(deps, request, realm);
    },
  },
  {
    grantType: '/oauth/grant-type/password-realm',
    summary: 'A password, in the named connection',
    parameters: z.object({ ...credentials, realm: required('The name of a database connection.') }),
    gty: 'password',
    givesTicket: true,
    events: EXCHANGE_EVENTS,
    authenticate: async (deps, request) =>
      authenticate(deps, request, requiredField(request.params, 'realm')),
  },
];

async function authenticate(
  deps: PasswordGrantDependencies,
  { params, clientId, ctx, ip, browser }: GrantRequest,
  realm: string,
): Promise<GrantedLogin> {
  const identifier = requiredField(params, 'username');
  const password = requiredField(params, 'password');
  const { connection, strategy } = await databaseFor(deps.config, { clientId, realm });
  await deps.limitLogin(ctx, connection, identifier);
  // Whether application and user may use the organization is checked when the login is settled.
  const organization = params.organization && (await deps.config.organization(params.organization));
  const proof = {
    clientId,
    connection,
    identifier,
    credentials: password,
    caller: { ip, browser },
    ...(organization && { organization }),
  };
  return { login: await strategy.prove(deps, proof) };
}
