// The passwordless grant (spec "Passwordless"): a code exchanged at the token endpoint.
import type { GrantRequest, VendorGrant } from '../../engine/tokens.ts';
import { requiredField } from '../../http/body-fields.ts';
import { AuthError } from '../../http/errors.ts';
import type { Config } from '../../tenant/config.ts';
import { normalizeAddress, passwordlessConnection } from './connection.ts';
import { redeem, type VerifyDependencies } from './verify.ts';

/** The `passwordless/otp` grant of the tenant. */
export function passwordlessGrant(deps: VerifyDependencies & { config: Config }): VendorGrant {
  const { config } = deps;
  return {
    get grantType() {
      return `http://${config.settings().vendor_host}/oauth/grant-type/passwordless/otp`;
    },
    parameters: ['username', 'realm', 'otp', 'redirect_uri'],
    gty: 'passwordless',
    events: { failure: 'fepotpft' },
    authenticate: async (request) => {
      const username = requiredField(request.params, 'username');
      const realm = requiredField(request.params, 'realm');
      const secret = requiredField(request.params, 'otp');
      const { clientId, ip, browser } = request;
      await checkRedirectUri(config, request);
      const connection = await connectionOf(config, clientId, realm);
      const address = normalizeAddress(connection.channel, username);
      const proof = { clientId, connection, address, secret, caller: { ip, browser } };
      return { login: await redeem(deps, proof) };
    },
  };
}

/** The specification demands it, no SDK sends it: checked where given. */
async function checkRedirectUri(config: Config, { clientId, params }: GrantRequest): Promise<void> {
  const { redirect_uri: redirectUri } = params;
  if (redirectUri === undefined) return;
  const client = await config.client(clientId);
  if (client?.callbacks.includes(redirectUri) === true) return;
  throw new AuthError(400, 'invalid_request', 'redirect_uri is not registered for this application.');
}

/** At the token endpoint a connection's faults have the token endpoint's words. */
async function connectionOf(config: Config, clientId: string, realm: string) {
  try {
    return await passwordlessConnection(config, clientId, realm);
  } catch (thrown) {
    if (!(thrown instanceof AuthError)) throw thrown;
    throw new AuthError(400, 'invalid_request', thrown.error_description);
  }
}
