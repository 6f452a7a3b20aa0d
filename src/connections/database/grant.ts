// The password grants (RFC 6749 §4.3): the tenant's default config, or a realm named.
import type { GrantRequest, VendorGrant } from '../../engine/tokens.ts';
import { requiredField } from '../../http/body-fields.ts';
import { AuthError } from '../../http/errors.ts';
import { databaseFor } from '../../tenant/databases.ts';
import { type LoginDependencies, type LoginLimit, logIn } from './login.ts';

const EXCHANGE = { success: 'sepft', failure: 'fepft' } as const;

/** The `password` and `password-realm` grants of the tenant. */
export function passwordGrants(deps: LoginDependencies, limit: LoginLimit): VendorGrant[] {
  const { config } = deps;
  const authenticate = async (request: GrantRequest, realm: string) => {
    const identifier = requiredField(request.params, 'username');
    const password = requiredField(request.params, 'password');
    const connection = await databaseFor(config, request.clientId, realm);
    await limit(request.ctx, connection, identifier);
    const login = await logIn(deps, {
      clientId: request.clientId,
      connection,
      identifier,
      password,
      ip: request.ip,
      browser: request.browser,
    });
    return { login };
  };
  return [
    {
      grantType: 'password',
      parameters: ['username', 'password'],
      gty: 'password',
      events: EXCHANGE,
      authenticate: async (request) => {
        const realm = config.settings().tenant.default_directory;
        if (realm === undefined) {
          throw new AuthError(
            400,
            'invalid_request',
            'Authorization server not configured with default connection.',
          );
        }
        return authenticate(request, realm);
      },
    },
    {
      get grantType() {
        return `http://${config.settings().vendor_host}/oauth/grant-type/password-realm`;
      },
      parameters: ['username', 'password', 'realm'],
      gty: 'password',
      events: EXCHANGE,
      authenticate: async (request) => authenticate(request, requiredField(request.params, 'realm')),
    },
  ];
}
