// Verifies the access token of a request to the My Account API.
import type { Context } from 'koa';
import type { ApiToken, ApiTokenReader } from '../engine/api-tokens.ts';
import { presentedToken } from '../engine/proof-of-possession.ts';
import type { Sessions } from '../engine/sessions.ts';
import { AuthError } from '../http/errors.ts';
import type { Config } from '../tenant/config.ts';
import { readPresence } from '../users/login.ts';
import type { Users } from '../users/users.ts';
import { type Actor, actorFrom } from './actor.ts';
import type { AccountScope } from './api.ts';
import { accountAudience } from './audience.ts';

export interface CallerDependencies {
  issuer: string;
  config: Pick<Config, 'client' | 'clientGrant'>;
  readApiToken: ApiTokenReader;
  sessions: Pick<Sessions, 'isOpen'>;
  users: Pick<Users, 'get' | 'credentialVersion'>;
}

/**
 * Returns the user of a request, and the login that its access token was issued for.
 * @throws AuthError 401 `invalid_token` for a missing or invalid token: of another audience, of a session that has
 *   ended or a password that was changed, of a blocked user, or of an application whose client grant was removed; 403
 *   `insufficient_scope`.
 */
export async function actorOf(deps: CallerDependencies, ctx: Context, scope: AccountScope): Promise<Actor> {
  const presented = presentedToken(ctx);
  if (presented === undefined) throw invalidToken();
  const token = await deps.readApiToken(ctx, presented.value, accountAudience(deps.issuer));
  if (token === undefined) throw invalidToken();
  const user = await userOf(deps, token);
  if (!token.scopes.includes(scope))
    throw new AuthError(403, 'insufficient_scope', `Insufficient scope, expected: ${scope}`, {
      extra: { scope },
    });
  const { clientId, claims } = token;
  return actorFrom(ctx, {
    user,
    clientId,
    login: {
      id: textOf(claims.sid) ?? textOf(claims.grant) ?? token.id,
      amr: Array.isArray(claims.amr) ? claims.amr.map(String) : [],
      presence: readPresence(claims.presence),
      authTime: typeof claims.auth_time === 'number' ? claims.auth_time : undefined,
      credentialVersion: Number(claims.credential_version),
      factors: String(claims.factors_changed),
    },
  });
}

const textOf = (claim: unknown) => (typeof claim === 'string' ? claim : undefined);

async function userOf(deps: CallerDependencies, { userId, clientId, claims }: ApiToken) {
  const { sid, credential_version: version } = claims;
  const [user, current, client, grant, isOpen] = await Promise.all([
    deps.users.get(userId),
    deps.users.credentialVersion(userId),
    deps.config.client(clientId),
    deps.config.clientGrant(clientId, accountAudience(deps.issuer)),
    typeof sid === 'string' ? deps.sessions.isOpen(sid) : true,
  ]);
  const isGood = client !== undefined && grant !== undefined && isOpen && current === version;
  if (user === undefined || user.blocked === true || !isGood) throw invalidToken();
  return user;
}

function invalidToken(): AuthError {
  return new AuthError(401, 'invalid_token', 'The access token is invalid.');
}
