// The one end of every login at the token endpoint: an authenticated user → the token response.
import type { Context } from 'koa';
import type { KoaContextWithOIDC } from 'oidc-provider';
import { AuthError } from '../http/errors.ts';
import type { EventType } from '../records/log-events.ts';
import { type Clock, epochSeconds } from '../runtime/clock.ts';
import type { Login } from '../users/login.ts';
import { refusalOf } from './admission.ts';
import { applicationSettings } from './applications.ts';
import { requestedAudience, toAudience, toResource } from './audience.ts';
import { OIDC_SCOPES } from './claims.ts';
import { buildGrant, type GrantDependencies } from './grants.ts';
import { issueTokenResponse } from './internals.ts';
import { type LoginEventsDependencies, tellLogin } from './login-events.ts';
import type { AuthenticatedUser, SecondFactor } from './second-factor.ts';

export interface TokenDependencies extends GrantDependencies, LoginEventsDependencies {
  secondFactor: SecondFactor;
  clock: Clock;
}

/** What of a token request is not in its parameters. */
interface AskedTokens {
  /** As recorded in the tokens. */
  gty: string;
  /** The log event of the exchange, where it has one beside that of the login. */
  event: EventType | undefined;
  /** @see GrantRequest.userAddress */
  userAddress: string | undefined;
}

/**
 * Issues the tokens of an authenticated user for the scopes and the API asked for.
 * @throws AuthError when the user may not come in, or the application may not act on the user's word alone.
 */
export async function respondWithTokens(
  deps: TokenDependencies,
  ctx: KoaContextWithOIDC,
  login: AuthenticatedUser,
  asked: AskedTokens,
): Promise<void> {
  const { userId, amr, acr, credentialVersion } = login;
  const { provider, client } = ctx.oidc;
  if (client === undefined) throw new TypeError('a grant is asked for without an application');
  const place = { clientId: client.clientId, ip: ctx.ip };
  await refuseOvertaken(deps, login, place);
  if (!applicationSettings(client).firstParty) {
    throw new AuthError(
      403,
      'unauthorized_client',
      'Third-party applications must send the user to /authorize.',
    );
  }
  const resource = await requestedResource(deps, ctx);
  await requireSecondFactor(deps, ctx, login, { resource, ...asked });
  const scopes = await grantableScopes(deps, ctx, resource);
  const grant = await buildGrant(
    deps,
    provider,
    { userId, client },
    { scopes, resources: resource === undefined ? [] : [resource] },
  );
  Object.assign(grant, { amr: [...amr], credentialVersion });
  // Together: the store makes one write to disk of the two.
  const [grantId] = await Promise.all([grant.save(), deps.users.recordLogin(userId, ctx.ip)]);
  ctx.oidc.entity('Grant', grant);
  // Held in memory only: the shape the engine issues from.
  const source = new provider.AuthorizationCode({ accountId: userId, client, grantId } as never);
  Object.assign(source, {
    scope: [...scopes].join(' '),
    authTime: epochSeconds(deps.clock),
    ...(resource === undefined ? {} : { resource }),
    amr: [...amr],
    ...(acr === undefined ? {} : { acr }),
  });
  await issueTokenResponse(provider, ctx, source, grant, asked.gty);
  try {
    await refuseOvertaken(deps, login, place);
  } catch (thrown) {
    await Promise.all([grant.destroy(), provider.AccessToken.revokeByGrantId(grantId)]);
    throw thrown;
  }
  await tellLogin(deps, 's', login, place);
  if (asked.event !== undefined) {
    deps.events.record({ type: asked.event, client_id: place.clientId, user_id: userId, ip: ctx.ip });
  }
}

/** @throws AuthError when the login does not hold any more, or its user may not come in. */
async function refuseOvertaken(
  deps: TokenDependencies,
  login: Login,
  place: { clientId: string; ip: string },
): Promise<void> {
  const refusal = await refusalOf(deps.users, login);
  if (refusal === undefined) return;
  await tellLogin(deps, 'f', login, { ...place, description: refusal.error_description });
  throw refusal;
}

/** @throws AuthError 403 `mfa_required` */
async function requireSecondFactor(
  deps: TokenDependencies,
  ctx: KoaContextWithOIDC,
  login: Login,
  asked: AskedTokens & { resource: string | undefined },
): Promise<void> {
  const { userId, amr, connection, credentialVersion } = login;
  const { resource, gty, userAddress } = asked;
  const { secondFactor } = deps;
  const { client, params } = ctx.oidc;
  const clientId = client?.clientId ?? '';
  const audience = resource === undefined ? undefined : toAudience(resource);
  const judged = { acrValues: [], audience, browser: false, userAddress, ctx: ctx as unknown as Context };
  if (!(await secondFactor.isDemanded({ userId, clientId, amr, credentialVersion, ...judged }))) return;
  await tellLogin(deps, 'mfar', login, { clientId, ip: ctx.ip });
  const scope = typeof params?.scope === 'string' ? params.scope : '';
  throw await secondFactor.refusal(userId, clientId, {
    scope,
    gty,
    firstFactor: { userId, amr, connection, credentialVersion },
    ...(resource !== undefined && { resource }),
  });
}

async function requestedResource(
  { config }: TokenDependencies,
  ctx: KoaContextWithOIDC,
): Promise<string | undefined> {
  const requested = requestedAudience(ctx.oidc.params);
  if (requested !== undefined && (await config.resourceServer(requested)) === undefined) {
    throw new AuthError(403, 'access_denied', `Service not found: ${requested}`);
  }
  const audience = requested ?? config.settings().tenant.default_audience;
  return audience === undefined ? undefined : toResource(audience);
}

/** The scopes asked for that exist, without `offline_access` where the API or the application allows none. */
async function grantableScopes(
  { config }: TokenDependencies,
  ctx: KoaContextWithOIDC,
  resource: string | undefined,
) {
  const api = resource === undefined ? undefined : await config.resourceServer(toAudience(resource));
  const known = new Set<string>([...OIDC_SCOPES, ...(api?.scopes.map(({ value }) => value) ?? [])]);
  const scopes = new Set([...ctx.oidc.requestParamScopes].filter((scope) => known.has(scope)));
  const offline =
    ctx.oidc.client?.grantTypeAllowed('refresh_token') === true && api?.allow_offline_access !== false;
  if (!offline) scopes.delete('offline_access');
  return scopes;
}
