// Reads the API and the scopes that a token request asks for.
import type { KoaContextWithOIDC } from 'oidc-provider';
import { AuthError } from '../../http/errors.ts';
import { asksEachTime } from '../../records/apis.ts';
import type { Config } from '../../tenant/config.ts';
import { actorOf } from '../admission/exchange-context.ts';
import { OIDC_SCOPES, requestedAudience, toAudience, toResource } from '../base/requested-audience.ts';
import { applicationSettings } from '../client/applications.ts';

interface ConfigDependency {
  config: Pick<Config, 'resourceServer' | 'settings'>;
}

/**
 * Returns the API of a token request, or else the tenant's default, as a resource indicator.
 * @throws AuthError 403 when there is no such API.
 */
export async function requestedResource(
  { config }: ConfigDependency,
  ctx: KoaContextWithOIDC,
): Promise<string | undefined> {
  const requested = requestedAudience(ctx.oidc.params);
  if (requested !== undefined && (await config.resourceServer(requested)) === undefined) {
    throw new AuthError(403, 'access_denied', `Service not found: ${requested}`);
  }
  const audience = requested ?? config.settings().tenant.default_audience;
  return audience === undefined ? undefined : toResource(audience);
}

/** Returns the requested scopes that exist, with `offline_access` only if API and application allow it. */
export async function grantableScopes(
  { config }: ConfigDependency,
  ctx: KoaContextWithOIDC,
  resource: string | undefined,
) {
  const api = resource === undefined ? undefined : await config.resourceServer(toAudience(resource));
  const known = new Set<string>([...OIDC_SCOPES, ...(api?.scopes.map(({ value }) => value) ?? [])]);
  const scopes = new Set([...ctx.oidc.requestParamScopes].filter((scope) => known.has(scope)));
  const offline =
    ctx.oidc.client?.grantTypeAllowed('refresh_token') === true && api?.allow_offline_access !== false;
  // No refresh token when somebody acts for the user: refreshed tokens would not name the actor.
  const isDelegated = actorOf(ctx) !== undefined || ctx.oidc.params?.actor_token !== undefined;
  if (!offline || isDelegated) scopes.delete('offline_access');
  return scopes;
}

/**
 * Returns the API of a token request ({@link requestedResource}), unless the request is refused for what it asks for,
 * whoever its user is.
 * @param isFromPages whether its user was asked at our pages.
 * @throws AuthError 403 when there is no such API; `unauthorized_client` for an API that requires consent each time,
 *   because at the token endpoint the user cannot be asked, and what {@link refuseThirdParty} throws.
 */
export async function admittedResource(
  deps: ConfigDependency,
  ctx: KoaContextWithOIDC,
  isFromPages: boolean,
): Promise<string | undefined> {
  refuseThirdParty(ctx, isFromPages);
  const resource = await requestedResource(deps, ctx);
  const api = resource === undefined ? undefined : await deps.config.resourceServer(toAudience(resource));
  if (isFromPages || !asksEachTime(api)) return resource;
  throw new AuthError(
    403,
    'unauthorized_client',
    'The API has its users asked for consent: applications must send them to /authorize.',
  );
}

/** Refuses a third-party application whose user was not asked for consent. @throws AuthError 403 `unauthorized_client`. */
export function refuseThirdParty({ oidc: { client } }: KoaContextWithOIDC, isFromPages: boolean): void {
  if (isFromPages || (client !== undefined && applicationSettings(client).firstParty)) return;
  throw new AuthError(
    403,
    'unauthorized_client',
    'Third-party applications must send the user to /authorize.',
  );
}
