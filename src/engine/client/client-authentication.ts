// Client authentication at our own endpoints, with the token endpoint's code: none, client_secret_post (also JSON),
// client_secret_basic, private_key_jwt with replay protection.
import type { Context } from 'koa';
import type Provider from 'oidc-provider';
import type { KoaContextWithOIDC } from 'oidc-provider';
import { forwardedAddress } from '../../http/addresses.ts';
import { bodyFields } from '../../http/body.ts';
import { AuthError } from '../../http/errors.ts';
import type { ReadBasic } from '../base/basic-credentials.ts';
import { vendorError } from '../base/failures.ts';
import { engineClientAuthentication } from '../base/internals.ts';
import { applicationSettings } from './applications.ts';

const PARAMETERS = ['client_id', 'client_secret', 'client_assertion', 'client_assertion_type'] as const;

/** An access token (RFC 6750 §2.1; RFC 9449 §7.1), which does not authenticate a client. */
const ACCESS_TOKEN = /^(Bearer|DPoP)(\s|$)/i;

/**
 * Authenticates the application by its registered method. An access token in the request is the user's and is ignored
 * here (RFC 6749 §2.3).
 * @returns its client_id.
 * @throws AuthError 401 `invalid_client`, 400 `invalid_request` when there is nothing to authenticate.
 */
export async function authenticateClient(
  provider: Provider,
  readBasic: ReadBasic,
  ctx: Context,
): Promise<string> {
  await readBasic(ctx);
  const fields = bodyFields(ctx, PARAMETERS);
  const oidc = new provider.OIDCContext(ctx);
  const params = Object.fromEntries(PARAMETERS.map((name) => [name, fields[name] || undefined]));
  // The engine derives an assertion's audience from the route: the token endpoint's.
  Object.assign(oidc, { params, route: 'token' });
  const { authorization, ...others } = ctx.headers;
  const headers = ACCESS_TOKEN.test(authorization ?? '') ? others : ctx.headers;
  const engineContext = Object.create(ctx, {
    oidc: { value: oidc },
    headers: { value: headers },
  }) as KoaContextWithOIDC;
  try {
    const run = async (index: number): Promise<void> => {
      await engineClientAuthentication[index]?.(engineContext, () => run(index + 1));
    };
    await run(0);
  } catch (thrown) {
    throw (thrown instanceof Error ? vendorError(thrown, undefined) : undefined) ?? thrown;
  }
  const { client } = oidc;
  if (client === undefined) throw new AuthError(401, 'invalid_client', 'Unauthorized');
  applyForwardedAddress(ctx, client);
  return client.clientId;
}

/**
 * Uses `auth0-forwarded-for` as the client's address, so that a server's users have limits of their own. Trusted only from
 * an authenticated application that is allowed to send it.
 * @returns the user's address; undefined when a confidential application does not send it.
 */
export function applyForwardedAddress(ctx: Context, client: object): string | undefined {
  const { isForwardedAddressTrusted, runsOnUserDevice } = applicationSettings(client);
  if (runsOnUserDevice) return ctx.ip;
  const address = forwardedAddress(ctx.get('auth0-forwarded-for'));
  if (address === undefined || !isForwardedAddressTrusted) return undefined;
  ctx.request.ip = address;
  return address;
}
