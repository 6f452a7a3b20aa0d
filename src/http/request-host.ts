// The host of a request. Anybody may write any name into `Host`, so it is judged once, against the hosts that the tenant is
// served at, and replaced: whatever reads it later, also in libraries, gets one of those.
import type { Context, Middleware } from 'koa';

/** A host of the tenant. */
export interface TenantHost {
  /** In lower case, with its port unless that is 443. */
  host: string;
  hostname: string;
  origin: string;
  /** Whether it is a custom domain, or the host of mutual TLS. */
  isCustom: boolean;
  /** Whether the request was sent to this host; otherwise it named none of the tenant, and this is the tenant's own. */
  isRequested: boolean;
}

interface TenantHosts {
  /** The public origin. */
  baseUrl: string;
  /** The origin of the console, which may be `baseUrl`. */
  consoleUrl: string;
  /** Returns the origins of the custom domains, and of mutual TLS. */
  customOrigins(): readonly string[];
}

/** The `uri-host` and port of a Host (RFC 9110 §7.2), as names and addresses are written that can be resolved. */
const HOST = /^(?:[a-z0-9._~-]+|\[[0-9a-f:.]+\])(?::\d{1,5})?$/i;

/**
 * Returns a host in the form of {@link TenantHost.host}.
 * @param value a Host, or the authority of a request target.
 * @returns undefined for an invalid one.
 */
export function normalHost(value: string): string | undefined {
  if (!HOST.test(value)) return undefined;
  // The dot at the end of an absolute name (RFC 1034 §3.1) makes no other host.
  return URL.parse(`https://${value}`)?.host.replace(/\.(?=:|$)/, '') || undefined;
}

/**
 * Finds the tenant's host of each request and leaves it for {@link tenantHostOf} and in the header. Requests for other
 * names count as for the tenant's own: an edge or a health check may request another one.
 */
export function tenantHost({ baseUrl, consoleUrl, customOrigins }: TenantHosts): Middleware {
  const own = hostOf(baseUrl, false);
  const unknown = { ...own, isRequested: false };
  const ofConsole = hostOf(consoleUrl, false);
  const find = (requested: string | undefined): TenantHost => {
    if (requested === own.host) return own;
    if (requested === ofConsole.host) return ofConsole;
    const origin = customOrigins().find((one) => one === `https://${requested}`);
    return origin === undefined ? unknown : hostOf(origin, true);
  };
  return (ctx, next) => {
    const { headers } = ctx.req;
    const found = find(headers.host);
    ctx.state.tenantHost = found;
    headers.host = found.host;
    return next();
  };
}

function hostOf(address: string, isCustom: boolean): TenantHost {
  const { host, hostname, origin } = new URL(address);
  return { host, hostname, origin, isCustom, isRequested: true };
}

/** Returns the tenant's host of a request. */
export function tenantHostOf(ctx: Pick<Context, 'state'>): TenantHost {
  const { tenantHost: found } = ctx.state as { tenantHost?: TenantHost };
  if (found === undefined) throw new Error('the host of the request was not judged');
  return found;
}
