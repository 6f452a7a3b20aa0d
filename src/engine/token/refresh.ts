// Decides for which API a refresh issues an access token: the one that was granted, with its scopes or fewer (RFC
// 6749 §6), or another one that the application's `refresh_token.policies` allow.
import type { IncomingMessage } from 'node:http';
import { type Client, errors, type Grant, type KoaContextWithOIDC, type RefreshToken } from 'oidc-provider';
import type { Frozen } from '../../records/base/record.ts';
import { asksEachTime, scopeValues, skipsConsentOf } from '../../records/clients/apis.ts';
import type { ArtifactRecord } from '../../records/state/engine.ts';
import { type Clock, epochSeconds } from '../../runtime/clock.ts';
import type { Store } from '../../store/contract.ts';
import type { Config } from '../../tenant/config.ts';
import { expiresByIdleness, refreshTokenLifetime } from '../admission/lifetimes.ts';
import { checkNarrowing } from '../base/authorization-details.ts';
import type { Commits } from '../base/commit.ts';
import { OIDC_SCOPES, toResource } from '../base/request-extensions.ts';
import { applicationSettings } from '../client/applications.ts';
import { familyKey, withExpiry } from '../session/refresh-families.ts';

/** The target parameters of a refresh request. */
interface RequestedTarget {
  /** The API's identifier. */
  identifier: string | undefined;
  /**
   * Whether the API was named by `resource` (RFC 8707), which is always checked. An `audience` is ignored where the
   * application has no policies.
   */
  isResource: boolean;
  scope: string | undefined;
  /** `authorization_details` (RFC 9396 §6.1), as received. */
  details: string | undefined;
}

export interface RefreshTargets {
  // docs/understand/decisions/tokens.md#whether-a-refresh-may-be-for-another-api-is-decided-before-its-token-is-used-up
  /** Remembers the target of a refresh request, before the engine handles the request. */
  remember(req: IncomingMessage, target: RequestedTarget): void;
  /**
   * Sets the API, scope and authorization details of a refresh, after its token was verified and before it is used
   * up.
   */
  decide(ctx: KoaContextWithOIDC, client: Client, token: RefreshToken): Promise<void>;
}

export function refreshTargets(config: Config): RefreshTargets {
  const requests = new WeakMap<IncomingMessage, RequestedTarget>();
  return {
    remember: (req, target) => void requests.set(req, target),
    decide: async (ctx, client, token) => {
      const { params, entities } = ctx.oidc;
      const { identifier, isResource, scope, details } = requests.get(ctx.req) ?? {};
      const grant = entities.Grant;
      if (params === undefined || grant === undefined) return;
      if (details) {
        checkNarrowing(details, token);
        Object.assign(params, { authorization_details: details });
      }
      const grantedResources = [token.resource ?? []].flat();
      if (identifier !== undefined && !grantedResources.includes(toResource(identifier))) {
        if (await useOtherApi(config, ctx, { client, token, grant, identifier, scope })) return;
        const hasPolicies = applicationSettings(client).refreshToken.policies?.length;
        if (isResource === true || hasPolicies) throw new errors.InvalidTarget(NOT_FOR_API);
      }
      const missing = scopeValues(scope).filter((one) => !token.scopes.has(one));
      if (missing.length > 0) throw new errors.InvalidScope(NOT_GRANTED, missing.join(' '));
      Object.assign(params, { ...(scope && { scope }) });
    },
  };
}

const NOT_FOR_API = 'The refresh token is not for this API.';
const NOT_GRANTED = 'refresh token missing requested scope';

/** Directs the refresh at another API. @returns false when no policy of the application allows it. */
async function useOtherApi(
  config: Config,
  { oidc: { params } }: KoaContextWithOIDC,
  target: Pick<RequestedTarget, 'scope'> & {
    client: Client;
    token: RefreshToken;
    grant: Grant;
    identifier: string;
  },
): Promise<boolean> {
  const { client, token, grant, identifier, scope } = target;
  const { refreshToken, firstParty } = applicationSettings(client);
  const policy = refreshToken.policies?.find(({ audience }) => audience === identifier);
  const api = policy && (await config.resourceServer(identifier));
  // The user of a third-party application has consented to nothing but what was asked for at the login.
  if (policy === undefined || !firstParty || api?.allow_offline_access !== true) return false;
  // The user cannot be asked here.
  if (asksEachTime(api) || !skipsConsentOf(api)) return false;
  const grantedOidcScopes = OIDC_SCOPES.filter((one) => token.scopes.has(one));
  const allowed = [
    ...grantedOidcScopes,
    ...policy.scope.filter((one) => api.scopes.some(({ value }) => value === one)),
  ];
  const scopes = scope ? allowed.filter((one) => scope.split(' ').includes(one)) : allowed;
  const resource = toResource(identifier);
  // Only for this request: the grant is not stored again, and the next refresh token is for the same API as this
  // one.
  grant.addResourceScope(resource, scopes.join(' '));
  Object.assign(params ?? {}, { resource, scope: scopes.join(' ') });
  return true;
}

// Refresh tokens that are not rotated: each use keeps them alive for another idle lifetime.

/**
 * Extends the expiry of a refresh token that was just used, never beyond its absolute lifetime. A token without an
 * idle lifetime and without bounds is left as it is.
 */
export async function extendRefreshToken(
  { store, clock, wallClock, commits }: { store: Store; clock: Clock; wallClock: Clock; commits: Commits },
  token: RefreshToken,
  client: Client,
): Promise<void> {
  if (!expiresByIdleness(client) && (token as { bounds?: unknown }).bounds === undefined) return;
  const left = refreshTokenLifetime(wallClock, token, client);
  const expiresAt = epochSeconds(clock) + left;
  // The engine also checks a date of its own.
  const now = epochSeconds(wallClock);
  const exp = now + left;
  const artifacts = store.collection('artifacts');
  const family = familyKey(token.jti);
  const change = (current: Frozen<ArtifactRecord>) => withExpiry(current, token.jti, { exp, expiresAt, now });
  if (!commits.add({ collection: 'artifacts', update: family, change }))
    await artifacts.update(family, change);
}
