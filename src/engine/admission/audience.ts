// `audience` on the wire is a resource indicator (RFC 8707) in the engine. API identifiers may be any string, resource
// indicators must be URIs: each identifier is encoded as a URN.
import { type Client, errors, type KoaContextWithOIDC, type ResourceServer } from 'oidc-provider';
import type { ResourceServer as Api } from '../../records/collections.ts';
import { MFA_SCOPES } from '../../records/users/second-factors.ts';
import type { Config } from '../../tenant/config.ts';
import type { User } from '../../users/user.ts';
import type { Users } from '../../users/users.ts';
import { OIDC_SCOPES, toAudience, toResource } from '../base/request-extensions.ts';
import { applicationSettings, tokenAlgorithm } from '../client/applications.ts';
import { accessTokenEncryption } from '../client/client-encryption.ts';
import type { MachineOrganizations } from './admission.ts';
import { type Organizations, organizationOf } from './admission.ts';

interface ResourceIndicators {
  defaultResource(
    ctx: KoaContextWithOIDC,
    client: Client,
    oneOf?: readonly string[],
  ): Promise<string | undefined>;
  useGrantedResource(): boolean;
  getResourceServerInfo(ctx: KoaContextWithOIDC, resource: string, client: Client): Promise<ResourceServer>;
}

interface AudienceDependencies {
  config: Config;
  users: Pick<Users, 'get' | 'permissionsAt'>;
  organizations: Pick<Organizations, 'rolesOf'>;
  machines: Pick<MachineOrganizations, 'check'>;
}

/** The engine's `resourceIndicators` configuration, from the tenant's APIs. */
export function resourceIndicators(deps: AudienceDependencies): ResourceIndicators {
  const { config } = deps;
  return {
    defaultResource: async (ctx, _client, oneOf) => {
      if (oneOf !== undefined) return oneOf[0];
      const audience = config.settings().tenant.default_audience;
      if (audience !== undefined) return toResource(audience);
      if (!isClientCredentials(ctx)) return undefined;
      throw new errors.AccessDenied(
        'No audience parameter was provided, and no default audience has been configured',
      );
    },
    // The token request need not name the API again.
    useGrantedResource: () => true,
    getResourceServerInfo: async (ctx, resource, client) => {
      const audience = toAudience(resource);
      const api = await config.resourceServer(audience);
      if (api === undefined) throw new errors.AccessDenied(`Service not found: ${audience}`);
      const scope = isClientCredentials(ctx)
        ? await clientScope(deps, ctx, client, api)
        : [...OIDC_SCOPES, ...(await userScope(deps, ctx, client, api))];
      return {
        audience,
        scope: scope.join(' '),
        accessTokenFormat: 'jwt',
        accessTokenTTL: lifetime(api, ctx),
        jwt: { sign: signing(api, client), ...accessTokenEncryption(api) },
      };
    },
  };
}

/**
 * Returns the scopes of an API that an application may get for a user.
 * @throws errors.AccessDenied when it may get none.
 */
async function userScope(
  deps: AudienceDependencies,
  ctx: KoaContextWithOIDC,
  client: Client,
  api: Api,
): Promise<string[]> {
  const policy = api.subject_type_authorization?.user?.policy ?? 'allow_all';
  const { isStrict } = applicationSettings(client);
  if (policy === 'allow_all' && !isStrict) return currentScopes(deps, ctx, api);
  // docs/understand/decisions/clients-keys.md#a-third-party-application-is-strict-unless-it-says-otherwise
  const isClosed = policy === 'deny_all' || (isStrict && api.is_system === true);
  const grant = isClosed ? undefined : await deps.config.clientGrant(client.clientId, api.identifier);
  if (grant?.subject_type !== 'user') throw isStrict ? notForThirdParties(api) : notGranted(api);
  const scopes = await currentScopes(deps, ctx, api);
  return grant.allow_all_scopes === true ? scopes : scopes.filter((scope) => grant.scope.includes(scope));
}

function notForThirdParties({ identifier }: Api) {
  return new errors.UnauthorizedClient(
    `Third-party applications need a client grant to access ${identifier}`,
  );
}

function notGranted({ identifier }: Api) {
  return new errors.AccessDenied(
    `Client is not authorized to access "${identifier}". You need to create a "client-grant" associated to this API.`,
  );
}

/**
 * Returns the scopes of an API that a token of this request can have. With `enforce_policies` a permission that was
 * removed since the login, also from a role, is not among them. At /authorize the user is not known yet, and the
 * grant decides.
 */
async function currentScopes(
  deps: AudienceDependencies,
  ctx: KoaContextWithOIDC,
  api: Api,
): Promise<string[]> {
  const userId = ctx.oidc.account?.accountId;
  if (userId === undefined || !api.enforce_policies) return userScopes(api);
  const permitted = await permittedScopes(deps, api, await deps.users.get(userId), organizationOf(ctx));
  return userScopes(api).filter((scope) => permitted.includes(scope));
}

/**
 * Returns the scopes of an API that a user's token can have. Of our own APIs these are the scopes for the user's
 * own record.
 */
function userScopes({ scopes, is_system }: Api): string[] {
  const all = scopes.map(({ value }) => value);
  return is_system === true ? all.filter(isForOneself) : all;
}

/** Whether a scope of one of our own APIs reaches nothing but the record of the token's user. */
export const isForOneself = (scope: string) =>
  scope.includes(':current_user') || scope.includes(':me:') || MFA_SCOPES.some((one) => one === scope);

function isClientCredentials(ctx: KoaContextWithOIDC): boolean {
  return ctx.oidc.params?.grant_type === 'client_credentials';
}

// docs/understand/decisions/tokens.md#tokens-live-as-long-as-the-api-and-the-application-say
/** Returns the lifetime of an access token, seconds; one that /authorize answers with has the shorter "web" lifetime. */
function lifetime(api: Api, ctx: KoaContextWithOIDC): number {
  const isFrontChannel = ctx.oidc.params?.response_type !== undefined;
  return isFrontChannel ? Math.min(api.token_lifetime_for_web, api.token_lifetime) : api.token_lifetime;
}

function signing(api: Api, client: Client): NonNullable<NonNullable<ResourceServer['jwt']>['sign']> {
  const alg = tokenAlgorithm(api, client);
  if (alg !== 'HS256') return { alg };
  // The tenant file is checked for it; with a store that was edited by hand this fails instead of signing with
  // nothing.
  if (api.signing_secret === undefined) throw new Error(`the API ${api.identifier} has no signing_secret`);
  return { alg, key: Buffer.from(api.signing_secret) };
}

/** Returns the scopes of the client grant; all of them when none is requested, as with the hosted service. */
async function clientScope(
  { config, machines }: AudienceDependencies,
  ctx: KoaContextWithOIDC,
  client: Client,
  api: Api,
) {
  const audience = api.identifier;
  const grant = await config.clientGrant(client.clientId, audience);
  const isClosed =
    api.subject_type_authorization?.client?.policy === 'deny_all' ||
    (api.is_system === true && applicationSettings(client).isStrict);
  // A grant for users, or for anonymous sessions, does not allow the application anything for itself.
  if (isClosed || grant === undefined || (grant.subject_type ?? 'client') !== 'client') throw notGranted(api);
  await machines.check(ctx.req, grant, client.clientId);
  const { params } = ctx.oidc;
  const requested = typeof params?.scope === 'string' ? params.scope.split(' ') : undefined;
  const allowed = grant.allow_all_scopes === true ? api.scopes.map(({ value }) => value) : grant.scope;
  const refused = requested?.filter((scope) => !allowed.includes(scope)) ?? [];
  if (refused.length > 0) {
    throw new errors.AccessDenied(`Client has not been granted scopes: ${refused.join(', ')}`);
  }
  if (requested === undefined && params !== undefined) params.scope = allowed.join(' ');
  return [...allowed];
}

// Decides which scopes of an API a user may have.

interface PermittedDependencies {
  users: Pick<Users, 'permissionsAt'>;
  organizations: Pick<Organizations, 'rolesOf'>;
}

/**
 * Returns the scopes of an API that a user may have. With `enforce_policies` each needs a permission of the same
 * name, the user's own or that of a role; roles within the organization of the tokens count, too.
 */
export async function permittedScopes(
  { users, organizations }: PermittedDependencies,
  api: Api,
  user: User | undefined,
  organization: string | undefined,
): Promise<string[]> {
  const all = api.scopes.map(({ value }) => value);
  if (!api.enforce_policies) return all;
  if (user === undefined) return [];
  const roles = await organizations.rolesOf(organization, user.id);
  const permissions = await users.permissionsAt(user, api.identifier, roles);
  return all.filter((scope) => permissions.includes(scope));
}
