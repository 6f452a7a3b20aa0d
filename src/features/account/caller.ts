// Verifies the access token of a request to the My Account API.
import type { Context } from 'koa';
import { presentedToken } from '../../engine/binding/proof-of-possession.ts';
import { type ApiTokenReader, loginOfToken } from '../../engine/token/api-tokens.ts';
import { AuthError } from '../../http/errors.ts';
import type { Config } from '../../tenant/config.ts';
import { type Actor, actorFrom } from './actor.ts';
import type { AccountScope } from './api.ts';
import { accountAudience } from './audience.ts';

export interface CallerDependencies {
  issuer: string;
  config: Pick<Config, 'clientGrant'>;
  readApiToken: ApiTokenReader;
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
  const { clientId, user } = token;
  const grant = await deps.config.clientGrant(clientId, accountAudience(deps.issuer));
  if (grant === undefined) throw invalidToken();
  if (!token.scopes.includes(scope))
    throw new AuthError(403, 'insufficient_scope', `Insufficient scope, expected: ${scope}`, {
      extra: { scope },
    });
  const login = loginOfToken(token);
  return actorFrom(ctx, { user, clientId, login: { ...login, id: login.sessionId } });
}

function invalidToken(): AuthError {
  return new AuthError(401, 'invalid_token', 'The access token is invalid.');
}
