// Reads the API and the scopes that a token request asks for.
import type { KoaContextWithOIDC } from 'oidc-provider';
import { AuthError } from '../http/errors.ts';
import { asksEachTime } from '../records/apis.ts';
import type { Config } from '../tenant/config.ts';
import { requestedAudience, toAudience, toResource } from './audience.ts';
import { OIDC_SCOPES } from './claims.ts';
import { actorOf } from './exchange-context.ts';

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
 * Refuses an API that requires consent each time: at the token endpoint the user cannot be asked.
 * @throws AuthError 403 `unauthorized_client`.
 */
export async function refuseConsentRequired(
  { config }: ConfigDependency,
  resource: string | undefined,
): Promise<void> {
  if (resource === undefined || !asksEachTime(await config.resourceServer(toAudience(resource)))) return;
  throw new AuthError(
    403,
    'unauthorized_client',
    'The API has its users asked for consent: applications must send them to /authorize.',
  );
}
