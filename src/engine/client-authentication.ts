// Authenticates the application at endpoints of ours, by the very code that the token endpoint runs:
// none, client_secret_post (JSON too), client_secret_basic, private_key_jwt with replay refused.
import { isIP } from 'node:net';
import type { Context } from 'koa';
import type Provider from 'oidc-provider';
import type { KoaContextWithOIDC } from 'oidc-provider';
import { bodyFields } from '../http/body-fields.ts';
import { AuthError } from '../http/errors.ts';
import { applicationSettings } from './applications.ts';
import { vendorError } from './failures.ts';
import { engineClientAuthentication } from './internals.ts';

const PARAMETERS = ['client_id', 'client_secret', 'client_assertion', 'client_assertion_type'] as const;

/** `Authorization` with a token of the user's (RFC 6750 §2.1): no way for a client to authenticate. */
const BEARER = /^Bearer(\s|$)/i;

/**
 * The application that sent the request, by the method it is registered with. A bearer token beside it is the
 * user's: it neither authenticates the application nor stands in the way of what does (RFC 6749 §2.3).
 * @returns its client_id.
 * @throws AuthError 401 `invalid_client`, 400 `invalid_request` when there is nothing to authenticate.
 */
export async function authenticateClient(provider: Provider, ctx: Context): Promise<string> {
  const fields = bodyFields(ctx, PARAMETERS);
  const oidc = new provider.OIDCContext(ctx);
  const params = Object.fromEntries(PARAMETERS.map((name) => [name, fields[name] || undefined]));
  // The route names the audience that an assertion may be for: the token endpoint's, as everywhere.
  Object.assign(oidc, { params, route: 'token' });
  const { authorization, ...others } = ctx.headers;
  const headers = BEARER.test(authorization ?? '') ? others : ctx.headers;
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
  believeUserAddress(ctx, client);
  return client.clientId;
}

/**
 * A server that speaks for its users says where they are (`auth0-forwarded-for`): their limits are then theirs, not
 * one for all of them. Believed of an authenticated application that may alone.
 * @returns where the user is: undefined when a server speaks for them and does not say.
 */
export function believeUserAddress(ctx: Context, client: object): string | undefined {
  const { namesUserAddress, runsAtUser } = applicationSettings(client);
  if (runsAtUser) return ctx.ip;
  const address = ctx.get('auth0-forwarded-for').trim();
  if (isIP(address) === 0 || !namesUserAddress) return undefined;
  ctx.request.ip = address;
  return address;
}
