// `audience` on the wire is a resource indicator (RFC 8707) inside the engine. API identifiers may be any
// string, resource indicators must be URIs: so each identifier travels as a URN of its own.
import { type Client, errors, type KoaContextWithOIDC, type ResourceServer } from 'oidc-provider';
import type { ResourceServer as Api } from '../records/collections.ts';
import type { Config } from '../tenant/config.ts';
import { applicationSettings } from './applications.ts';
import { OIDC_SCOPES } from './claims.ts';

const PREFIX = 'urn:gatehouse:api:';

/** The resource indicator that stands for an API identifier inside the engine. */
export function toResource(audience: string): string {
  return PREFIX + encodeURIComponent(audience);
}

/**
 * The API identifier of a resource indicator made by {@link toResource}.
 * @throws errors.InvalidTarget (RFC 8707 §2) for one that was not.
 */
export function toAudience(resource: string): string {
  if (!resource.startsWith(PREFIX)) throw new errors.InvalidTarget(FOREIGN);
  try {
    return decodeURIComponent(resource.slice(PREFIX.length));
  } catch {
    throw new errors.InvalidTarget(FOREIGN);
  }
}

const FOREIGN = 'the requested resource is no API identifier';
const SEVERAL = 'tokens are for one API: audience and resource must name the same one, once';

/**
 * The API that a request as it was sent names: by `audience`, or by `resource` (RFC 8707 §2), which means the same
 * here. Empty parameters count as omitted (RFC 6749 §3.1).
 * @returns its identifier, or why there is none: for `invalid_target`.
 */
export function namedApi(params: {
  audience?: unknown;
  resource?: unknown;
}): { identifier: string | undefined } | { fault: string } {
  const named = [params.audience, params.resource].filter((value) => value !== undefined && value !== '');
  const [identifier] = named;
  if (identifier === undefined) return { identifier };
  if (typeof identifier !== 'string' || named.some((other) => other !== identifier))
    return { fault: SEVERAL };
  // What is not Unicode cannot be in a URI; what looks like the engine's own form was not made by us.
  if (!identifier.isWellFormed() || identifier.startsWith(PREFIX)) return { fault: FOREIGN };
  return { identifier };
}

/**
 * The API that a request names, once it is in the engine's form.
 * @param params the engine's.
 * @throws errors.InvalidTarget when it names several, or what is none.
 */
export function requestedAudience(params: Readonly<Record<string, unknown>> | undefined): string | undefined {
  const resource = params?.resource;
  if (resource === undefined) return undefined;
  if (typeof resource !== 'string') throw new errors.InvalidTarget(SEVERAL);
  return toAudience(resource);
}

export interface ResourceIndicators {
  defaultResource(
    ctx: KoaContextWithOIDC,
    client: Client,
    oneOf?: readonly string[],
  ): Promise<string | undefined>;
  useGrantedResource(): boolean;
  getResourceServerInfo(ctx: KoaContextWithOIDC, resource: string, client: Client): Promise<ResourceServer>;
}

/** The engine's resource indicator callbacks, answered from the tenant's APIs. */
export function resourceIndicators(config: Config): ResourceIndicators {
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
    // An authorization for an API gives tokens for that API, without the client naming it again.
    useGrantedResource: () => true,
    getResourceServerInfo: async (ctx, resource, client) => {
      const audience = toAudience(resource);
      const api = await config.resourceServer(audience);
      if (api === undefined) throw new errors.AccessDenied(`Service not found: ${audience}`);
      const scope = isClientCredentials(ctx)
        ? await clientScope(config, ctx, client, audience)
        : [...OIDC_SCOPES, ...api.scopes.map(({ value }) => value)];
      return {
        audience,
        scope: scope.join(' '),
        accessTokenFormat: 'jwt',
        accessTokenTTL: lifetime(api, ctx, client),
        jwt: { sign: signing(api) },
      };
    },
  };
}

function isClientCredentials(ctx: KoaContextWithOIDC): boolean {
  return ctx.oidc.params?.grant_type === 'client_credentials';
}

/** Tokens that a browser gets straight from /authorize live by the shorter "web" lifetime (seconds). */
function lifetime(api: Api, ctx: KoaContextWithOIDC, client: Client): number {
  const frontChannel = ctx.oidc.params?.response_type !== undefined;
  const web = frontChannel && applicationSettings(client).appType === 'spa';
  return web ? Math.min(api.token_lifetime_for_web, api.token_lifetime) : api.token_lifetime;
}

function signing(api: Api): NonNullable<NonNullable<ResourceServer['jwt']>['sign']> {
  if (api.signing_alg === 'RS256') return { alg: 'RS256' };
  // A tenant file is refused when an HS256 API has no secret; a store edited by hand must fail, not sign.
  if (api.signing_secret === undefined) throw new Error(`the API ${api.identifier} has no signing_secret`);
  return { alg: 'HS256', key: Buffer.from(api.signing_secret) };
}

/** What the client grant allows; all of it when the client asks for no scope, as with the hosted service. */
async function clientScope(config: Config, ctx: KoaContextWithOIDC, client: Client, audience: string) {
  const grant = await config.clientGrant(client.clientId, audience);
  if (grant === undefined) {
    throw new errors.AccessDenied(
      `Client is not authorized to access "${audience}". You need to create a "client-grant" associated to this API.`,
    );
  }
  const { params } = ctx.oidc;
  const requested = typeof params?.scope === 'string' ? params.scope.split(' ') : undefined;
  const refused = requested?.filter((scope) => !grant.scope.includes(scope)) ?? [];
  if (refused.length > 0) {
    throw new errors.AccessDenied(`Client has not been granted scopes: ${refused.join(', ')}`);
  }
  if (requested === undefined && params !== undefined) params.scope = grant.scope.join(' ');
  return [...grant.scope];
}
