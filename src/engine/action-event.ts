// What actions are told of a request: who asks for what, and from where. Nothing in it is a secret of anybody.
import type { Context } from 'koa';
import type { KoaContextWithOIDC } from 'oidc-provider';
import type { Frozen } from '../records/record.ts';
import type { Config } from '../tenant/config.ts';
import type { Asker } from '../users/asker.ts';
import { toAudience } from './audience.ts';
import { upstreamAdditional } from './request-extensions.ts';

/** Parameters that actions may read, of a query and of a body: proofs and secrets are not among them. */
const READABLE = new Set(
  `acr_values audience claims client_id connection display grant_type id_token_signed_response_alg invitation login_hint
  max_age nonce organization prompt realm redirect_uri resource response_mode response_type scope screen_hint state
  ui_locales username email phone_number`.split(/\s+/),
);

/** The parameters that actions may read: those of the protocols without proofs, and `ext-…` of applications. */
function readable(params: Readonly<Record<string, unknown>> | undefined): Record<string, string> {
  return Object.fromEntries(
    Object.entries(params ?? {}).flatMap(([name, value]) =>
      typeof value === 'string' && (READABLE.has(name) || name.startsWith('ext-')) ? [[name, value]] : [],
    ),
  );
}

/**
 * `event.request`.
 * @param params the request's parameters; those of a body where it is a POST.
 */
export function requestOf(
  ctx: Context | KoaContextWithOIDC,
  params: Readonly<Record<string, unknown>> | undefined,
): Record<string, unknown> {
  const { method, ip } = ctx;
  const isBody = method === 'POST';
  return {
    ip,
    hostname: ctx.hostname,
    method,
    user_agent: ctx.get('user-agent'),
    language: ctx.get('accept-language').split(',')[0] || undefined,
    query: isBody ? {} : readable(params),
    body: isBody ? readable(params) : {},
    // Where an address is, this server does not know.
    geoip: {},
  };
}

/** `event.request` of a request to the engine, which keeps what it does not know (`ext-…`) beside its parameters. */
export function engineRequestOf(ctx: Context | KoaContextWithOIDC): Record<string, unknown> {
  const { body, params = {} } = (ctx as KoaContextWithOIDC).oidc;
  const { resource, ...own } = params;
  // `resource` is the engine's own form of the API; an application has sent its identifier.
  const audience = typeof resource === 'string' ? { audience: toAudience(resource) } : {};
  return requestOf(ctx, { ...withoutResource(body), ...upstreamAdditional(params), ...own, ...audience });
}

function withoutResource(body: unknown): object {
  const { resource: _, ...others } = (body ?? {}) as { resource?: unknown };
  return others;
}

/**
 * Who asks for what the tenant's code has a say in.
 * @param params as for {@link requestOf}; none of them where they are not of a protocol.
 */
export function askerOf(
  ctx: Context,
  clientId: string | undefined,
  params?: Readonly<Record<string, unknown>>,
): Required<Pick<Asker, 'request'>> & Asker {
  return { clientId, request: requestOf(ctx, params) };
}

/** `event.resource_server`, where the request is for an API. */
export function apiOf(identifier: string | undefined): Record<string, unknown> {
  return identifier === undefined ? {} : { resource_server: { identifier } };
}

/** `event.organization`, where the request is for one. */
export async function organizationPart(
  config: Pick<Config, 'organization'>,
  id: string | undefined,
): Promise<Record<string, unknown>> {
  const found: Frozen<Record<string, unknown>> | undefined =
    id === undefined ? undefined : await config.organization(id);
  if (found === undefined) return {};
  const { name, display_name, metadata = {} } = found;
  return { organization: { id, name, display_name, metadata } };
}
