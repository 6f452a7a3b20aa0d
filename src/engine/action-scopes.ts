// Applies the scopes that actions add to an access token or remove from it.
import type { AccessToken, ClientCredentials, KoaContextWithOIDC } from 'oidc-provider';
import type { Actions } from '../actions/actions.ts';
import { scopeValues } from '../records/scope.ts';
import type { Config } from '../tenant/config.ts';
import { toAudience } from './audience.ts';
import { isOidcScope } from './claims.ts';
import type { LoginActions } from './login-actions.ts';

interface ScopeDependencies {
  config: Pick<Config, 'resourceServer'>;
  actions: Pick<Actions, 'recordRefusal'>;
  loginActions: Pick<LoginActions, 'claimsOf'>;
}

/**
 * Changes the scope of an access token that is about to be stored, as actions said. An added scope has to be one of
 * the API's, whatever the user's permissions are. OpenID Connect scopes cannot be added, because the user was not
 * asked for them; `openid` cannot be removed, because the protocol depends on it. Scopes of the Management API
 * cannot be added.
 * @returns undefined when there is nothing to do.
 */
export function applyScopes(
  deps: ScopeDependencies,
  ctx: KoaContextWithOIDC | undefined,
  token: AccessToken | ClientCredentials,
): Promise<void> | undefined {
  const scopes = 'accountId' in token ? (deps.loginActions.claimsOf(ctx)?.scopes ?? {}) : {};
  if (ctx === undefined || Object.keys(scopes).length === 0) return undefined;
  return changeScopes(deps, { ctx, token, scopes });
}

interface ScopeChange {
  ctx: KoaContextWithOIDC;
  token: AccessToken | ClientCredentials;
  /** True for a scope that is added, false for one that is removed. */
  scopes: Readonly<Record<string, boolean>>;
}

async function changeScopes(
  { config, actions }: ScopeDependencies,
  { ctx, token, scopes }: ScopeChange,
): Promise<void> {
  const resource = token.resourceServer?.identifier();
  const api = resource === undefined ? undefined : await config.resourceServer(toAudience(resource));
  const known = new Set(
    api === undefined || api.is_system === true ? [] : api.scopes.map(({ value }) => value),
  );
  const remaining = new Set(scopeValues(token.scope));
  const refused: string[] = [];
  for (const [scope, isAdded] of Object.entries(scopes)) {
    const isOidc = isOidcScope(scope);
    if (isAdded && known.has(scope) && !isOidc) remaining.add(scope);
    else if (isAdded && !remaining.has(scope)) refused.push(`addScope ${scope}`);
    else if (!isAdded && scope !== 'openid') remaining.delete(scope);
    else if (!isAdded) refused.push('removeScope openid');
  }
  if (refused.length > 0) {
    const about = { client_id: ctx.oidc.client?.clientId, user_id: ctx.oidc.account?.accountId, ip: ctx.ip };
    actions.recordRefusal('post-login', refused.join(', ').slice(0, 500), about);
  }
  Object.assign(token, { scope: [...remaining].join(' ') || undefined });
}
