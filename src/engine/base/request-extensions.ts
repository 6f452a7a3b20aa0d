// Members of an authorization request beyond the standard. They are taken out before the engine sees the request,
// and passed through the engine in one parameter that no client can set.

import type { Context } from 'koa';
import { errors } from 'oidc-provider';
import { z } from 'zod';
import { jsonOf } from '../../runtime/json.ts';
import type { Config } from '../../tenant/config.ts';
import type { Login } from '../../users/login.ts';

// The devices that began a session or refresh token and used it last, as the Management API shows them.

/** Member names are those of the hosted service's API. */
export interface Device {
  initial_ip: string;
  initial_user_agent: string;
  last_ip: string;
  last_user_agent: string;
}

/** The most characters of a user agent that are stored. */
const MAX_USER_AGENT_LENGTH = 255;

/** Returns the device of a request. @param before the device stored before, whose initial values stay. */
export function deviceOf(ctx: Pick<Context, 'ip' | 'get'>, before: unknown): Device {
  const ip = ctx.ip;
  const agent = ctx.get('user-agent').slice(0, MAX_USER_AGENT_LENGTH);
  const stored = before as Device | undefined;
  return {
    initial_ip: stored?.initial_ip ?? ip,
    initial_user_agent: stored?.initial_user_agent ?? agent,
    last_ip: ip,
    last_user_agent: agent,
  };
}

// `audience` on the wire is a resource indicator (RFC 8707) in the engine. API identifiers may be any string, resource
// indicators must be URIs: each identifier is encoded as a URN.

/** The scopes of OpenID Connect, apart from any API's. */
export const OIDC_SCOPES = ['openid', 'profile', 'email', 'phone', 'address', 'offline_access'] as const;

/** Whether a scope is OpenID Connect's, not an API's. */
export function isOidcScope(scope: string): boolean {
  return (OIDC_SCOPES as readonly string[]).includes(scope);
}

/** The consent key of the OIDC scopes. The consent key of an API is its resource indicator. */
export const OIDC_CONSENT_KEY = '';

const PREFIX = 'urn:gatehouse:api:';

export function toResource(audience: string): string {
  return PREFIX + encodeURIComponent(audience);
}

/**
 * Returns the API identifier of a resource indicator made by {@link toResource}.
 * @throws errors.InvalidTarget (RFC 8707 §2) for any other.
 */
export function toAudience(resource: string): string {
  if (!resource.startsWith(PREFIX)) throw new errors.InvalidTarget(NOT_AN_API);
  try {
    return decodeURIComponent(resource.slice(PREFIX.length));
  } catch {
    throw new errors.InvalidTarget(NOT_AN_API);
  }
}

const NOT_AN_API = 'the requested resource is no API identifier';
const SEVERAL_APIS = 'tokens are for one API: audience and resource must name the same one, once';

// docs/understand/decisions/tokens.md#an-access-token-is-for-one-api
export interface RequestedApi {
  identifier: string | undefined;
  /** Whether it was named by `resource`. */
  isResource: boolean;
}

/**
 * Returns the API that a request names by `audience` or `resource` (RFC 8707 §2). Empty parameters count as omitted (RFC
 * 6749 §3.1). An `audience` is returned as it was sent, whether there is such an API or not.
 * @returns the API, or the description of `invalid_target`.
 */
export async function requestedApi(
  config: Pick<Config, 'settings' | 'resourceServer'>,
  params: { audience?: unknown; resource?: unknown },
): Promise<RequestedApi | { fault: string }> {
  const profile = config.settings().tenant.resource_parameter_profile;
  const [audience, resource] = [params.audience, params.resource].map((value) => value || undefined);
  if (!isIdentifier(audience)) return { fault: typeof audience === 'string' ? NOT_AN_API : SEVERAL_APIS };
  const isIgnored = profile === 'audience' || (profile === 'compatibility' && audience !== undefined);
  if (resource === undefined || isIgnored) return { identifier: audience, isResource: false };
  if (!isIdentifier(resource)) return { fault: typeof resource === 'string' ? NOT_AN_API : SEVERAL_APIS };
  const identifier = await indicatedApi(config, resource);
  if (audience !== undefined && audience !== resource && audience !== identifier)
    return { fault: SEVERAL_APIS };
  if (identifier === undefined) return { fault: `Service not found: ${resource}` };
  return { identifier, isResource: true };
}

/** Malformed Unicode cannot be in a URI; a client must not send the engine's own form. */
function isIdentifier(value: unknown): value is string | undefined {
  return (
    value === undefined || (typeof value === 'string' && value.isWellFormed() && !value.startsWith(PREFIX))
  );
}

/**
 * Returns the identifier of the API that a resource indicator means. They are compared as texts, but for the slash that
 * URL libraries add where there is no path.
 */
async function indicatedApi(
  config: Pick<Config, 'resourceServer'>,
  resource: string,
): Promise<string | undefined> {
  if ((await config.resourceServer(resource)) !== undefined) return resource;
  if (!EMPTY_PATH.test(resource)) return undefined;
  const other = resource.endsWith('/') ? resource.slice(0, -1) : `${resource}/`;
  return (await config.resourceServer(other))?.identifier;
}

/** A URL of a server, with nothing behind its name but perhaps a slash. */
const EMPTY_PATH = /^https?:\/\/[^/?#]+\/?$/i;

/**
 * Returns the API of a normalized request.
 * @param params the engine's.
 * @throws errors.InvalidTarget when it names several, or not in the form of {@link toResource}.
 */
export function requestedAudience(params: Readonly<Record<string, unknown>> | undefined): string | undefined {
  const resource = params?.resource;
  if (resource === undefined) return undefined;
  if (typeof resource !== 'string') throw new errors.InvalidTarget(SEVERAL_APIS);
  return toAudience(resource);
}

/** Internal parameter that carries {@link RequestExtensions} through the engine; a client's own value is dropped. */
export const EXTENSIONS_PARAMETER = 'gatehouse_notes';

/** Stands for a missing nonce where the engine requires one. */
export const PLACEHOLDER_NONCE = 'none-was-sent';

const visitorSchema = z.object({
  /** The `sub` of the anonymous session's access tokens. */
  subject: z.string(),
  /** The metadata that the application has stored in the session. */
  metadata: z.record(z.string(), z.unknown()).optional(),
});

/** The user of an anonymous session. */
export type Visitor = z.infer<typeof visitorSchema>;

/** What the application's own request contained, which stays true when a login page restarts the request. */
const sentSchema = z.object({
  /** `offline_access` was asked for. */
  offline: z.boolean(),
  /** The nonce is {@link PLACEHOLDER_NONCE}. */
  withoutNonce: z.boolean(),
  /** Unknown parameters, for the upstream provider. */
  upstream: z.record(z.string(), z.string()),
  /** The user's anonymous session before this login. */
  visitor: visitorSchema.optional(),
  /** Why the named API is invalid. */
  invalidTarget: z.string().optional(),
  /** Whether the parameters were pushed or signed, and must not be changed by a page. */
  isFixed: z.boolean().optional(),
  /** The key of a pushed request in the store. */
  pushed: z.string().optional(),
});

/** What `normalizeRequest` takes out of a request, to be restored later. */
const extensionsSchema = sentSchema.extend({
  /** Ticket of a login before this request (cross-origin, or by a link). */
  loginTicket: z.string().optional(),
  /** A session transfer token, as received. */
  transferToken: z.string().optional(),
  /** The login that the session transfer token stands for. Set only by this server. */
  handed: z.custom<Login>((one) => typeof one === 'object').optional(),
  /** Hash of the request's secret in its browser. */
  browser: z.string().optional(),
  /** Why the request is refused before the engine looks at it. */
  refused: z.object({ error: z.string(), description: z.string() }).optional(),
});

export type RequestExtensions = z.infer<typeof extensionsSchema>;

/** Returns the extensions of a normalized request; empty for any other. */
export function readExtensions(params: Readonly<Record<string, unknown>>): RequestExtensions {
  const extensions = params[EXTENSIONS_PARAMETER];
  const read = extensionsSchema.safeParse(typeof extensions === 'string' ? jsonOf(extensions) : undefined);
  return read.success ? read.data : { offline: false, withoutNonce: false, upstream: {} };
}

/** Returns only what the application's own request contained: no login that was handed over, no secret of a browser. */
export function sentExtensions(extensions: RequestExtensions): z.infer<typeof sentSchema> {
  return sentSchema.parse(extensions);
}

/** Returns the unknown parameters of a normalized request, which are for an upstream provider. */
export function upstreamParameters(params: Readonly<Record<string, unknown>>): Record<string, string> {
  return readExtensions(params).upstream;
}
