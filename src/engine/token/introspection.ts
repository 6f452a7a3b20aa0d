// POST /oauth/introspect (RFC 7662): an API asks whether an access token that it has received is active. Only
// tokens for that API are; for any other token the answer is the same.
// docs/understand/decisions/tokens.md#an-api-introspects-tokens-as-a-client-of-its-own
import type { JWTPayload } from 'jose';
import type { Context } from 'koa';
import { AuthError } from '../../http/errors.ts';
import { bodyFields, requiredField } from '../../http/server/body.ts';
import { authenticationMethod } from '../../records/clients/client-authentication.ts';
import type { ResourceServer } from '../../records/collections.ts';
import type { Config } from '../../tenant/config.ts';
import type { Users } from '../../users/users.ts';
import type { Organizations } from '../admission/admission.ts';
import { admissionError } from '../admission/admission.ts';
import { ANONYMOUS, isTokenEnded, readOwnToken, type TokenVerification } from '../base/signed-tokens.ts';
import { anonymousGrant } from '../session/anonymous-sessions.ts';
import type { Sessions } from '../session/sessions.ts';

interface IntrospectionDependencies extends TokenVerification {
  authenticateClient(ctx: Context): Promise<string>;
  config: Config;
  users: Pick<Users, 'get' | 'credentialVersion'>;
  sessions: Pick<Sessions, 'isOpen' | 'grantOf'>;
  organizations: Pick<Organizations, 'isMember'>;
}

/** The response (RFC 7662 §2.2). */
type IntrospectionResponse = { active: false } | ({ active: true } & Readonly<Record<string, unknown>>);

/**
 * Answers an introspection request.
 * @throws AuthError 401 for a client that does not authenticate, 403 `unauthorized_client` for a client that does
 *   not belong to an API, 400 without a token.
 */
export type Introspect = (ctx: Context) => Promise<IntrospectionResponse>;

const INACTIVE = { active: false } as const;

export function introspection(deps: IntrospectionDependencies): Introspect {
  return async (ctx) => {
    const api = await apiOf(deps, await deps.authenticateClient(ctx));
    const payload = await verifyToken(deps, requiredField(bodyFields(ctx), 'token'), api);
    if (payload === undefined || !(await isStillAuthorized(deps, payload, api))) return INACTIVE;
    const { azp, client_id = azp, ...claims } = payload;
    const isBoundToKey = (payload.cnf as { jkt?: unknown } | undefined)?.jkt !== undefined;
    return { ...claims, client_id, token_type: isBoundToKey ? 'DPoP' : 'Bearer', active: true };
  };
}

/**
 * Returns the API that a client belongs to: a confidential client of type `resource_server`, which names its API.
 */
async function apiOf({ config }: IntrospectionDependencies, clientId: string): Promise<ResourceServer> {
  const client = await config.client(clientId);
  const identifier = client?.app_type === 'resource_server' ? client.resource_server_identifier : undefined;
  const api = identifier && (await config.resourceServer(identifier));
  if (client !== undefined && authenticationMethod(client) !== 'none' && api) return api;
  throw new AuthError(403, 'unauthorized_client', 'The client is not that of an API.');
}

/** Returns the claims of a token that we have signed for the API and that has not expired. */
async function verifyToken(
  deps: TokenVerification,
  token: string,
  api: ResourceServer,
): Promise<JWTPayload | undefined> {
  const secret = api.signing_alg === 'HS256' && { secret: Buffer.from(api.signing_secret ?? '') };
  return readOwnToken(deps, token, { audience: api.identifier, anonymous: true, ...secret });
}

/**
 * Whether application and user of a token still have access: the application exists, the token has not ended, and the
 * user is neither removed nor blocked, and still a member of the organization.
 */
async function isStillAuthorized(
  { config, users, sessions, organizations }: IntrospectionDependencies,
  claims: JWTPayload,
  api: ResourceServer,
): Promise<boolean> {
  const { sub = '', azp, client_id, org_id, gty } = claims;
  const client = await config.client(String(azp ?? client_id));
  if (client === undefined) return false;
  if (gty === ANONYMOUS) return (await anonymousGrant(config, client, api)) !== undefined;
  if (gty === 'client-credentials') return true;
  const user = await users.get(sub);
  if (user === undefined || admissionError(user) !== undefined) return false;
  if (await isTokenEnded({ users, ...sessions }, user, claims)) return false;
  return typeof org_id !== 'string' || organizations.isMember(org_id, sub);
}
