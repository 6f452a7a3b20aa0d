// The one end of every login at the token endpoint: an authenticated user → the token response.

import type { Context } from 'koa';
import type Provider from 'oidc-provider';
import { errors, type KoaContextWithOIDC } from 'oidc-provider';
import { AuthError } from '../http/errors.ts';
import { type Clock, epochSeconds } from '../http/runtime.ts';
import type { Users } from '../users/users.ts';
import { admit } from './admission.ts';
import { applicationSettings } from './applications.ts';
import { toAudience, toResource } from './audience.ts';
import { OIDC_SCOPES } from './claims.ts';
import { believeUserAddress } from './client-authentication.ts';
import type { EngineFailures } from './failures.ts';
import { buildGrant, type GrantDependencies } from './grants.ts';
import { issueTokenResponse } from './internals.ts';

/** A token request of a vendor grant, its client authenticated. */
export interface GrantRequest {
  clientId: string;
  /** The grant's own parameters, as sent. */
  params: Readonly<Record<string, string | undefined>>;
  ip: string;
  /** The request itself, for its rate limits. */
  ctx: Context;
}

/** Who a vendor grant has authenticated. */
export interface AuthenticatedUser {
  userId: string;
  /** Authentication methods (RFC 8176), in the ID token's `amr` where given. */
  amr?: string[];
  /** Authentication context class, in the ID token's `acr` where given. */
  acr?: string;
}

/** A grant type beyond the engine's: a feature decides who the user is, the rest is done here. */
export interface VendorGrant {
  grantType: string;
  /** Names of the parameters it reads, beside scope, audience and client authentication. */
  parameters: string[];
  /** As recorded in the access token's `gty`. */
  gty: string;
  /** @throws AuthError when the user is not authenticated. */
  authenticate(request: GrantRequest): Promise<AuthenticatedUser>;
}

export interface TokenDependencies extends GrantDependencies {
  users: Users;
  failures: EngineFailures;
  clock: Clock;
}

/** Adds a vendor grant to the token endpoint. */
export function registerVendorGrant(deps: TokenDependencies, provider: Provider, grant: VendorGrant): void {
  const parameters = new Set(['scope', 'resource', ...grant.parameters]);
  provider.registerGrantType(
    grant.grantType,
    async (ctx) => {
      believeUserAddress(ctx as unknown as Context, ctx.oidc.client);
      const request: GrantRequest = {
        clientId: ctx.oidc.client.clientId,
        params: ctx.oidc.params as Record<string, string | undefined>,
        ip: ctx.ip,
        ctx: ctx as unknown as Context,
      };
      try {
        const user = await grant.authenticate(request);
        await respondWithTokens(deps, ctx, user, grant.gty);
      } catch (thrown) {
        if (!(thrown instanceof AuthError)) throw thrown;
        // The engine knows its own errors only; ours waits beside the request until the engine is done.
        deps.failures.keep(ctx as unknown as Context, thrown);
        throw new errors.CustomOIDCProviderError(thrown.error, thrown.error_description, { cause: thrown });
      }
    },
    parameters,
  );
}

/**
 * Issues the tokens of an authenticated user for the scopes and the API asked for.
 * @throws AuthError when the user may not come in, or the application may not act on the user's word alone.
 */
async function respondWithTokens(
  deps: TokenDependencies,
  ctx: KoaContextWithOIDC,
  { userId, amr, acr }: AuthenticatedUser,
  gty: string,
): Promise<void> {
  const { provider, client, params } = ctx.oidc;
  const user = await deps.users.get(userId);
  if (client === undefined || params === undefined || user === undefined) {
    throw new AuthError(403, 'invalid_grant', 'The user does not exist.');
  }
  const refusal = admit(user);
  if (refusal !== undefined) throw refusal;
  if (!applicationSettings(client).firstParty) {
    throw new AuthError(
      403,
      'unauthorized_client',
      'Third-party applications must send the user to /authorize.',
    );
  }
  const resource = await requestedResource(deps, ctx);
  const scopes = await grantableScopes(deps, ctx, resource);
  const grant = await buildGrant(
    deps,
    provider,
    { userId, client },
    { scopes, resources: resource === undefined ? [] : [resource] },
  );
  // Together: the store makes one write to disk of the two.
  const [grantId] = await Promise.all([grant.save(), deps.users.recordLogin(userId, ctx.ip)]);
  ctx.oidc.entity('Grant', grant);
  // Held in memory only: the shape the engine issues from.
  const source = new provider.AuthorizationCode({ accountId: userId, client, grantId } as never);
  Object.assign(source, {
    scope: [...scopes].join(' '),
    authTime: epochSeconds(deps.clock),
    ...(resource === undefined ? {} : { resource }),
    ...(amr === undefined ? {} : { amr }),
    ...(acr === undefined ? {} : { acr }),
  });
  await issueTokenResponse(provider, ctx, source, grant, gty);
}

async function requestedResource(
  { directory }: TokenDependencies,
  ctx: KoaContextWithOIDC,
): Promise<string | undefined> {
  const { resource } = ctx.oidc.params ?? {};
  if (typeof resource === 'string') {
    const audience = toAudience(resource);
    if ((await directory.resourceServer(audience)) === undefined) {
      throw new AuthError(403, 'access_denied', `Service not found: ${audience}`);
    }
    return resource;
  }
  const { default_audience: audience } = directory.settings().tenant;
  return audience === undefined ? undefined : toResource(audience);
}

/** The scopes asked for that exist, without `offline_access` where the API or the application allows none. */
async function grantableScopes(
  { directory }: TokenDependencies,
  ctx: KoaContextWithOIDC,
  resource: string | undefined,
) {
  const api = resource === undefined ? undefined : await directory.resourceServer(toAudience(resource));
  const known = new Set<string>([...OIDC_SCOPES, ...(api?.scopes.map(({ value }) => value) ?? [])]);
  const scopes = new Set([...ctx.oidc.requestParamScopes].filter((scope) => known.has(scope)));
  const offline =
    ctx.oidc.client?.grantTypeAllowed('refresh_token') === true && api?.allow_offline_access !== false;
  if (!offline) scopes.delete('offline_access');
  return scopes;
}
