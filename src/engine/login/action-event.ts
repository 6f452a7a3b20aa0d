// The parts of the `event` object of actions that describe a request. They contain no secrets.
import type { Context } from 'koa';
import type { KoaContextWithOIDC } from 'oidc-provider';
import { isCredentialName } from '../../http/request-log.ts';
import { tenantHostOf } from '../../http/request-target.ts';
import type { Frozen } from '../../records/record.ts';
import type { Config } from '../../tenant/config.ts';
import type { Asker } from '../../users/asker.ts';
import { EXTENSIONS_PARAMETER, upstreamParameters } from '../base/request-extensions.ts';
import { toAudience } from '../base/requested-audience.ts';

/**
 * Returns the parameters that actions may read: the application's own, and those of the protocol; no credentials, and not what
 * this server keeps with a request.
 */
function readable(params: Readonly<Record<string, unknown>> | undefined): Record<string, string> {
  const isReadable = (name: string) =>
    name.startsWith('ext-') || (!isCredentialName(name) && name !== EXTENSIONS_PARAMETER);
  return Object.fromEntries(
    Object.entries(params ?? {}).flatMap(([name, value]) =>
      typeof value === 'string' && isReadable(name) ? [[name, value]] : [],
    ),
  );
}

/** Returns `event.request`. @param params the parameters of the query, or of the body of a POST. */
export function requestOf(
  ctx: Context | KoaContextWithOIDC,
  params: Readonly<Record<string, unknown>> | undefined,
): Record<string, unknown> {
  const { method, ip } = ctx;
  const isBody = method === 'POST';
  return {
    ip,
    hostname: tenantHostOf(ctx).hostname,
    method,
    user_agent: ctx.get('user-agent'),
    language: ctx.get('accept-language').split(',')[0] || undefined,
    query: isBody ? {} : readable(params),
    body: isBody ? readable(params) : {},
    // This server does not look up where an address is.
    geoip: {},
  };
}

/**
 * Returns `event.request` for a request to the engine, which keeps unknown parameters (`ext-…`) apart from its own.
 */
export function engineRequestOf(ctx: Context | KoaContextWithOIDC): Record<string, unknown> {
  const { body, params = {} } = (ctx as KoaContextWithOIDC).oidc;
  const { resource, ...own } = params;
  // `resource` is the engine's form of the API; actions get the identifier that the application has sent.
  const audience = typeof resource === 'string' ? { audience: toAudience(resource) } : {};
  return requestOf(ctx, { ...withoutResource(body), ...upstreamParameters(params), ...own, ...audience });
}

function withoutResource(body: unknown): object {
  const { resource: _, ...others } = (body ?? {}) as { resource?: unknown };
  return others;
}

/**
 * Describes a request for scripts and hooks of the tenant.
 * @param params as for {@link requestOf}; undefined for a request whose parameters belong to no protocol.
 */
export function requestContextOf(
  ctx: Context,
  clientId: string | undefined,
  params?: Readonly<Record<string, unknown>>,
): Required<Pick<Asker, 'request'>> & Asker {
  return { clientId, request: requestOf(ctx, params) };
}

/** Returns `event.resource_server`, or nothing when the request is for no API. */
export function apiOf(identifier: string | undefined): Record<string, unknown> {
  return identifier === undefined ? {} : { resource_server: { identifier } };
}

/** Returns `event.organization`, or nothing when the request is for none. */
export async function organizationEvent(
  config: Pick<Config, 'organization'>,
  id: string | undefined,
): Promise<Record<string, unknown>> {
  const found: Frozen<Record<string, unknown>> | undefined =
    id === undefined ? undefined : await config.organization(id);
  if (found === undefined) return {};
  const { name, display_name, metadata = {} } = found;
  return { organization: { id, name, display_name, metadata } };
}
