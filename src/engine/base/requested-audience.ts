// `audience` on the wire is a resource indicator (RFC 8707) in the engine. API identifiers may be any string, resource
// indicators must be URIs: each identifier is encoded as a URN.
import { errors } from 'oidc-provider';

/** The scopes of OpenID Connect, apart from any API's. */
export const OIDC_SCOPES = ['openid', 'profile', 'email', 'phone', 'address', 'offline_access'] as const;

/** Whether a scope is OpenID Connect's, not an API's. */
export function isOidcScope(scope: string): boolean {
  return (OIDC_SCOPES as readonly string[]).includes(scope);
}

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

// docs/decisions/tokens.md#an-access-token-is-for-one-api
/**
 * Returns the API that a request names by `audience` or, with the same meaning, `resource` (RFC 8707 §2). Empty
 * parameters count as omitted (RFC 6749 §3.1).
 * @returns its identifier, or the description of `invalid_target`.
 */
export function requestedApi(params: {
  audience?: unknown;
  resource?: unknown;
}): { identifier: string | undefined } | { fault: string } {
  const values = [params.audience, params.resource].filter((value) => value !== undefined && value !== '');
  const [identifier] = values;
  if (identifier === undefined) return { identifier };
  if (typeof identifier !== 'string' || values.some((other) => other !== identifier))
    return { fault: SEVERAL_APIS };
  // Malformed Unicode cannot be in a URI; a client must not send the engine's own form.
  if (!identifier.isWellFormed() || identifier.startsWith(PREFIX)) return { fault: NOT_AN_API };
  return { identifier };
}

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
