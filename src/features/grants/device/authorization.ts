// POST /oauth/device/code (RFC 8628 §3.1, §3.2).
import type { Context } from 'koa';
import { z } from 'zod';
import { bodyFields } from '../../../http/body-fields.ts';
import { AuthError } from '../../../http/errors.ts';
import { CLIENT_FIELDS, optional } from '../../../http/parameter-schemas.ts';
import { ACTIVATION_PATH, DEVICE_GRANT } from './callbacks.ts';
import { CODE_SECONDS, type CodeDependencies, INTERVAL, issueCodes } from './codes.ts';

export interface AuthorizationDependencies extends CodeDependencies {
  authenticateClient(ctx: Context): Promise<string>;
  baseUrl: string;
}

export const authorizationBody = z.object({
  ...CLIENT_FIELDS,
  scope: optional('The requested scopes, separated by spaces.'),
  audience: optional('The identifier of the API that the access token is for.'),
  organization: optional('The organization that the login is for, by id or name.'),
});

export const authorizationAnswer = z.object({
  device_code: z.string().describe('For the token endpoint.'),
  user_code: z.string().describe('For the user, who types it.'),
  verification_uri: z.url(),
  verification_uri_complete: z.url().describe('With the code, for a QR code.'),
  expires_in: z.number().int().describe('Seconds.'),
  interval: z
    .number()
    .int()
    .describe('The minimum number of seconds between two requests to the token endpoint.'),
});

const FIELDS = [...Object.keys(CLIENT_FIELDS), 'scope', 'audience', 'resource', 'organization'];

/** The most characters of a scope or an identifier, which are stored while the code waits. */
const MAX_LENGTH = 2_000;

/**
 * Handles a request: issues the codes for a device.
 * @throws AuthError 401 `invalid_client`, 403 `unauthorized_client` for a client without the grant, 403
 *   `access_denied` for an API that does not exist.
 */
export async function authorizeDevice(
  deps: AuthorizationDependencies,
  ctx: Context,
): Promise<z.output<typeof authorizationAnswer>> {
  const clientId = await deps.authenticateClient(ctx);
  const { scope = '', organization, ...target } = bodyFields(ctx, FIELDS);
  const { config, baseUrl } = deps;
  const client = await config.client(clientId);
  if (client?.grant_types?.includes(DEVICE_GRANT) !== true)
    throw new AuthError(
      403,
      'unauthorized_client',
      `Grant type '${DEVICE_GRANT}' not allowed for the client.`,
    );
  const audience = target.audience || target.resource || config.settings().tenant.default_audience;
  if (target.audience && target.resource && target.audience !== target.resource)
    throw new AuthError(400, 'invalid_target', 'audience and resource must name the same API.');
  if ([scope, audience, organization].some((text) => (text?.length ?? 0) > MAX_LENGTH))
    throw new AuthError(400, 'invalid_request', 'The request is too long.');
  if (audience !== undefined && (await config.resourceServer(audience)) === undefined)
    throw new AuthError(403, 'access_denied', `Service not found: ${audience}`);
  const { deviceCode, userCode } = await issueCodes(deps, {
    clientId,
    scope,
    ip: ctx.ip,
    ...(audience !== undefined && { audience }),
    ...(organization && { organization }),
  });
  const page = `${baseUrl}${ACTIVATION_PATH}`;
  return {
    device_code: deviceCode,
    user_code: userCode,
    verification_uri: page,
    verification_uri_complete: `${page}?user_code=${encodeURIComponent(userCode)}`,
    expires_in: CODE_SECONDS,
    interval: INTERVAL,
  };
}
