// Applies the scopes that actions add to an access token or remove from it.
import type { AccessToken, ClientCredentials, KoaContextWithOIDC } from 'oidc-provider';
import type { Actions } from '../capabilities/actions/actions.ts';
import type { ResourceServer as Api } from '../records/collections.ts';
import { scopeValues } from '../records/scope.ts';
import type { Config } from '../tenant/config.ts';
import type { User } from '../users/user.ts';
import type { Users } from '../users/users.ts';
import { applicationSettings } from './applications.ts';
import { toAudience } from './audience.ts';
import { isOidcScope } from './claims.ts';
import type { TokenUsers } from './email-at-issue.ts';
import type { LoginActions } from './login-actions.ts';
import { type Organizations, organizationOf } from './organizations.ts';
import { permittedScopes } from './permitted-scopes.ts';

interface ScopeDependencies {
  config: Pick<Config, 'resourceServer'>;
  actions: Pick<Actions, 'recordRefusal'>;
  loginActions: Pick<LoginActions, 'claimsOf'>;
  users: Pick<Users, 'permissionsAt'>;
  organizations: Pick<Organizations, 'rolesOf'>;
  tokenUsers: TokenUsers;
}

/**
 * Changes the scope of an access token that is about to be stored, as actions said. OpenID Connect scopes cannot be added,
 * because the user was not asked for them; `openid` cannot be removed, because the protocol depends on it. Scopes of the
 * Management API cannot be added.
 * @returns undefined when there is nothing to do.
 */
export function applyScopes(
  deps: ScopeDependencies,
  ctx: KoaContextWithOIDC | undefined,
  token: AccessToken | ClientCredentials,
): Promise<void> | undefined {
  const { scopes = {}, targetScopes } = ('accountId' in token && deps.loginActions.claimsOf(ctx)) || {};
  if (ctx === undefined || (Object.keys(scopes).length === 0 && targetScopes === undefined)) return undefined;
  return changeScopes(deps, { ctx, token, scopes, targetScopes });
}

interface ScopeChange {
  ctx: KoaContextWithOIDC;
  token: AccessToken | ClientCredentials;
  /** True for a scope that is added, false for one that is removed. An added one needs no permission of the user. */
  scopes: Readonly<Record<string, boolean>>;
  /** The scopes that the token is to have, of those that application and user may have. */
  targetScopes: readonly string[] | undefined;
}

async function changeScopes(deps: ScopeDependencies, change: ScopeChange): Promise<void> {
  const { config, actions } = deps;
  const { ctx, token, scopes } = change;
  const resource = token.resourceServer?.identifier();
  const api = resource === undefined ? undefined : await config.resourceServer(toAudience(resource));
  const openApi = api?.is_system === true ? undefined : api;
  const known = new Set(openApi?.scopes.map(({ value }) => value));
  const remaining = new Set(await withinTargets(deps, change, openApi));
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

/**
 * Returns the target scopes that the token may have: those that it has, and those of the API that its user is permitted, for
 * an application that needs no consent. Others are left out silently, as with the hosted service.
 */
async function withinTargets(
  deps: ScopeDependencies,
  { ctx, token, targetScopes }: ScopeChange,
  api: Api | undefined,
): Promise<string[]> {
  const granted = scopeValues(token.scope);
  if (targetScopes === undefined) return granted;
  const { client } = ctx.oidc;
  const mayAdd = api !== undefined && client !== undefined && applicationSettings(client).firstParty;
  const user = deps.tokenUsers.get(ctx.oidc);
  const permitted = mayAdd
    ? await permittedScopes(deps, api, user as User | undefined, organizationOf(ctx))
    : [];
  const targets = new Set(targetScopes);
  const added = permitted.filter((scope) => targets.has(scope) && !isOidcScope(scope));
  return [...granted.filter((scope) => scope === 'openid' || targets.has(scope)), ...added];
}
