// The one end of every login at the token endpoint: an authenticated user → the token response.

import type { Context } from 'koa';
import type Provider from 'oidc-provider';
import { errors, type KoaContextWithOIDC } from 'oidc-provider';
import { AuthError } from '../http/errors.ts';
import { type Clock, epochSeconds } from '../http/runtime.ts';
import type { Login } from '../users/login.ts';
import type { Users } from '../users/users.ts';
import { refusalOf } from './admission.ts';
import { applicationSettings } from './applications.ts';
import { requestedAudience, toAudience, toResource } from './audience.ts';
import { OIDC_SCOPES } from './claims.ts';
import { believeUserAddress } from './client-authentication.ts';
import type { EngineFailures } from './failures.ts';
import { buildGrant, type GrantDependencies } from './grants.ts';
import { issueTokenResponse } from './internals.ts';
import { ORGANIZATION_REQUIRED } from './organizations.ts';

/** A token request of a vendor grant, its client authenticated. */
export interface GrantRequest {
  clientId: string;
  /** The grant's own parameters, as sent. */
  params: Readonly<Record<string, string | undefined>>;
  ip: string;
  /** Where the user is; undefined when a server speaks for them and does not say. */
  userAddress: string | undefined;
  /** The request itself, for its rate limits. */
  ctx: Context;
}

/** The login that a vendor grant was. */
export interface AuthenticatedUser extends Login {
  /** Authentication context class, in the ID token's `acr` where given. */
  acr?: string;
  /** The request that this one completes: its scopes, API and grant type are what tokens are issued for. */
  completes?: CompletedRequest;
  /** Further members of the token response. */
  extra?: Record<string, unknown>;
}

/** What a token request asked for that a second factor was missing for. */
export interface CompletedRequest {
  scope: string;
  /** A resource indicator, as the engine has it. */
  resource?: string;
  gty: string;
  firstFactor: Login;
}

/** Whether a login needs a second factor, and what is answered where it lacks one. */
export interface SecondFactor {
  /**
   * @param login.ctx the request, for the browser's cookies and address.
   * @returns whether a second factor is needed that the login has not had.
   */
  isDemanded(login: LoginToJudge): Promise<boolean>;
  /** What an access token for an API says of its login, beside what those of all APIs say. */
  tokenClaims(audience: string, login: JudgedLogin): Promise<Record<string, unknown>>;
  /** The refusal at the token endpoint, with which the application goes on to the second factor. */
  refusal(userId: string, clientId: string, request: CompletedRequest): Promise<AuthError>;
}

/** A login that tokens were issued for. */
export type JudgedLogin = Pick<Login, 'userId' | 'amr' | 'credentialVersion'>;

/** A login that is about to end. */
export interface LoginToJudge {
  userId: string;
  clientId: string;
  /** What the login has had so far. */
  amr: readonly string[];
  /** The context classes that the application asks for. */
  acrValues: readonly string[];
  /** The API that tokens are asked for; undefined for none, or the tenant's default one. */
  audience: string | undefined;
  /** The version of the credential that the login was proved by. */
  credentialVersion: number;
  /** In the browser a device may be known. */
  browser: boolean;
  /** At the token endpoint: where the user is; undefined when a server speaks for them and does not say. */
  userAddress?: string | undefined;
  ctx: Context;
}

/** A parameter that a grant cannot do without. @throws AuthError 400 `invalid_request` when it is not given. */
export function requiredParameter({ params }: GrantRequest, name: string): string {
  const value = params[name];
  if (value !== undefined && value !== '') return value;
  throw new AuthError(400, 'invalid_request', `Missing required parameter: ${name}`);
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
  secondFactor: SecondFactor;
  failures: EngineFailures;
  clock: Clock;
}

/** Adds a vendor grant to the token endpoint. */
export function registerVendorGrant(deps: TokenDependencies, provider: Provider, grant: VendorGrant): void {
  const parameters = new Set(['scope', 'resource', ...grant.parameters]);
  provider.registerGrantType(
    grant.grantType,
    async (ctx) => {
      const userAddress = believeUserAddress(ctx as unknown as Context, ctx.oidc.client);
      if (applicationSettings(ctx.oidc.client).membersOnly) {
        throw new errors.InvalidRequest(ORGANIZATION_REQUIRED);
      }
      const request: GrantRequest = {
        clientId: ctx.oidc.client.clientId,
        params: ctx.oidc.params as Record<string, string | undefined>,
        ip: ctx.ip,
        userAddress,
        ctx: ctx as unknown as Context,
      };
      try {
        const user = await grant.authenticate(request);
        const { completes } = user;
        if (completes !== undefined) {
          const { scope, resource } = completes;
          Object.assign(ctx.oidc.params ?? {}, { scope, resource });
        }
        await respondWithTokens(deps, ctx, user, { gty: completes?.gty ?? grant.gty, userAddress });
        if (user.extra !== undefined) Object.assign(ctx.body as object, user.extra);
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
  login: AuthenticatedUser,
  { gty, userAddress }: { gty: string; userAddress: string | undefined },
): Promise<void> {
  const { userId, amr, acr, credentialVersion } = login;
  const { provider, client } = ctx.oidc;
  if (client === undefined) throw new TypeError('a grant is asked for without an application');
  const refusal = await refusalOf(deps.users, login);
  if (refusal !== undefined) throw refusal;
  if (!applicationSettings(client).firstParty) {
    throw new AuthError(
      403,
      'unauthorized_client',
      'Third-party applications must send the user to /authorize.',
    );
  }
  const resource = await requestedResource(deps, ctx);
  await requireSecondFactor(deps, ctx, login, { resource, gty, userAddress });
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
  await issueTokenResponse(provider, ctx, source, grant, gty);
  const overtaken = await refusalOf(deps.users, login);
  if (overtaken === undefined) return;
  await Promise.all([grant.destroy(), provider.AccessToken.revokeByGrantId(grantId)]);
  throw overtaken;
}

/** @throws AuthError 403 `mfa_required` */
async function requireSecondFactor(
  { secondFactor }: TokenDependencies,
  ctx: KoaContextWithOIDC,
  login: Login,
  asked: { resource: string | undefined; gty: string; userAddress: string | undefined },
): Promise<void> {
  const { userId, amr, connection, credentialVersion } = login;
  const { resource, gty, userAddress } = asked;
  const { client, params } = ctx.oidc;
  const clientId = client?.clientId ?? '';
  const audience = resource === undefined ? undefined : toAudience(resource);
  const judged = { acrValues: [], audience, browser: false, userAddress, ctx: ctx as unknown as Context };
  if (!(await secondFactor.isDemanded({ userId, clientId, amr, credentialVersion, ...judged }))) return;
  const scope = typeof params?.scope === 'string' ? params.scope : '';
  throw await secondFactor.refusal(userId, clientId, {
    scope,
    gty,
    firstFactor: { userId, amr, connection, credentialVersion },
    ...(resource !== undefined && { resource }),
  });
}

async function requestedResource(
  { directory }: TokenDependencies,
  ctx: KoaContextWithOIDC,
): Promise<string | undefined> {
  const requested = requestedAudience(ctx.oidc.params);
  if (requested !== undefined && (await directory.resourceServer(requested)) === undefined) {
    throw new AuthError(403, 'access_denied', `Service not found: ${requested}`);
  }
  const audience = requested ?? directory.settings().tenant.default_audience;
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
