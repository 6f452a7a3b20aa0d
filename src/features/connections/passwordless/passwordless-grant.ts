// The passwordless grant (docs/reference/wire/passwordless.md): a code exchanged at the token endpoint.
import { z } from 'zod';
import { requestContextOf } from '../../../engine/login/login-event.ts';
import type { GrantDeclaration, GrantRequest } from '../../../engine/token/tokens.ts';
import { AuthError } from '../../../http/errors.ts';
import { optional, required } from '../../../http/parameter-schemas.ts';
import { requiredField } from '../../../http/server/body.ts';
import { isCallbackOf } from '../../../records/clients/allowed-urls.ts';
import type { Config } from '../../../tenant/config.ts';
import type { ProofDependencies } from '../strategy.ts';
import { passwordlessConnection } from './connection.ts';
import { passwordlessEvents } from './passwordless-declaration.ts';
import { redeemSession } from './session-code.ts';
import { redeem } from './verify.ts';

export interface PasswordlessGrantDependencies extends ProofDependencies {
  config: Config;
}

/** The path of the grant type, below the tenant's `vendor_host`. */
export const OTP_GRANT = '/oauth/grant-type/passwordless/otp';

export const passwordlessGrant: GrantDeclaration<PasswordlessGrantDependencies> = {
  grantType: OTP_GRANT,
  summary: 'A code that was sent by e-mail or SMS',
  parameters: z.object({
    otp: required('The code.'),
    username: optional('The e-mail address or phone number.'),
    realm: optional('The name of a passwordless connection.'),
    auth_session: optional('The value from `/otp/challenge`, instead of `username` and `realm`.'),
    redirect_uri: optional('A callback of the application; it is checked if it is sent.'),
  }),
  gty: 'passwordless',
  givesTicket: true,
  events: { failure: passwordlessEvents.fepotpft },
  authenticate: async (deps, request) => {
    const { config } = deps;
    if (request.params.auth_session !== undefined) return { login: await redeemSession(deps, request) };
    const username = requiredField(request.params, 'username');
    const realm = requiredField(request.params, 'realm');
    const secret = requiredField(request.params, 'otp');
    const { clientId, ip, browser } = request;
    await checkRedirectUri(config, request);
    const connection = await connectionOf(config, clientId, realm);
    const address = connection.strategy.normalize(username);
    const asker = requestContextOf(request.ctx, clientId, request.params);
    const named = request.params.organization;
    const organization = named ? await config.organization(named) : undefined;
    const proof = { clientId, connection, address, secret, caller: { ip, browser }, asker, organization };
    return { login: await redeem(deps, proof) };
  },
};

// docs/understand/decisions/passwordless-messages.md#redirect_uri-in-the-passwordless-grant-is-checked-if-it-is-present
/** Checks the redirect URI if there is one. The contract requires it; no SDK sends it (docs/reference/wire/token.md). */
async function checkRedirectUri(config: Config, { clientId, params }: GrantRequest): Promise<void> {
  const { redirect_uri: redirectUri, organization: named } = params;
  if (redirectUri === undefined) return;
  const client = await config.client(clientId);
  const organization = named ? await config.organization(named) : undefined;
  if (client !== undefined && isCallbackOf(client, redirectUri, organization)) return;
  throw new AuthError(400, 'invalid_request', 'redirect_uri is not registered for this application.');
}

/** Returns the connection. @throws AuthError 400 `invalid_request`, as the token endpoint answers. */
async function connectionOf(config: Config, clientId: string, realm: string) {
  try {
    return await passwordlessConnection(config, clientId, realm);
  } catch (thrown) {
    if (!(thrown instanceof AuthError)) throw thrown;
    throw new AuthError(400, 'invalid_request', thrown.error_description);
  }
}
