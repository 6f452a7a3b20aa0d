// Decides for which API a refresh issues an access token: the one that was granted, with its scopes or fewer (RFC
// 6749 §6), or another one that the application's `refresh_token.policies` allow.
import type { IncomingMessage } from 'node:http';
import { type Client, errors, type Grant, type KoaContextWithOIDC, type RefreshToken } from 'oidc-provider';
import { asksEachTime } from '../records/apis.ts';
import { scopeValues } from '../records/scope.ts';
import type { Config } from '../tenant/config.ts';
import { applicationSettings } from './applications.ts';
import { toResource } from './audience.ts';
import { checkFewer } from './authorization-details.ts';
import { OIDC_SCOPES } from './claims.ts';

/** What a request for a refresh names. */
interface Asked {
  /** The API's identifier. */
  identifier: string | undefined;
  /**
   * Whether the API was named by `resource` (RFC 8707), which is checked always, where `audience` may be ignored.
   */
  isResource: boolean;
  scope: string | undefined;
  /** `authorization_details` (RFC 9396 §6.1), as they came. */
  details: string | undefined;
}

export interface RefreshTargets {
  /** Keeps what a request asks for, before the engine sees it. */
  ask(req: IncomingMessage, asked: Asked): void;
  /**
   * Decides what a refresh is for, when its token was found good and before it is used up.
   * @throws errors.InvalidTarget for an API that the token is not for; errors.InvalidScope and
   *   errors.InvalidAuthorizationDetails for more than was granted.
   */
  decide(ctx: KoaContextWithOIDC, client: Client, token: RefreshToken): Promise<void>;
}

/** Those of one engine. */
export function refreshTargets(config: Config): RefreshTargets {
  const requests = new WeakMap<IncomingMessage, Asked>();
  return {
    ask: (req, asked) => void requests.set(req, asked),
    decide: async (ctx, client, token) => {
      const { params, entities } = ctx.oidc;
      const { identifier, isResource, scope, details } = requests.get(ctx.req) ?? {};
      const grant = entities.Grant;
      if (params === undefined || grant === undefined) return;
      if (details) {
        checkFewer(details, token);
        Object.assign(params, { authorization_details: details });
      }
      const own = [token.resource ?? []].flat();
      if (identifier !== undefined && !own.includes(toResource(identifier))) {
        if (await useOther(config, ctx, { client, token, grant, identifier, scope })) return;
        const hasPolicies = applicationSettings(client).refreshToken.policies?.length;
        if (isResource === true || hasPolicies) throw new errors.InvalidTarget(NOT_FOR_IT);
      }
      const missing = scopeValues(scope).filter((one) => !token.scopes.has(one));
      if (missing.length > 0) throw new errors.InvalidScope(NOT_GRANTED, missing.join(' '));
      Object.assign(params, { ...(scope && { scope }) });
    },
  };
}

const NOT_FOR_IT = 'The refresh token is not for this API.';
const NOT_GRANTED = 'refresh token missing requested scope';

/** Exchanges a token for one of another API. @returns false where no policy of the application allows it. */
async function useOther(
  config: Config,
  { oidc: { params } }: KoaContextWithOIDC,
  asked: Pick<Asked, 'scope'> & { client: Client; token: RefreshToken; grant: Grant; identifier: string },
): Promise<boolean> {
  const { client, token, grant, identifier, scope } = asked;
  const { refreshToken, firstParty } = applicationSettings(client);
  const policy = refreshToken.policies?.find(({ audience }) => audience === identifier);
  const api = policy && (await config.resourceServer(identifier));
  // The user of a third-party application has consented to what was asked for at the login, and to nothing else.
  if (policy === undefined || !firstParty || api?.allow_offline_access !== true) return false;
  if (asksEachTime(api)) return false;
  const ofUser = OIDC_SCOPES.filter((one) => token.scopes.has(one));
  const allowed = [...ofUser, ...policy.scope.filter((one) => api.scopes.some(({ value }) => value === one))];
  const wanted = scope ? allowed.filter((one) => scope.split(' ').includes(one)) : allowed;
  const resource = toResource(identifier);
  // Of this request alone: the grant is not stored again, and the next refresh token is for what this one was for.
  grant.addResourceScope(resource, wanted.join(' '));
  Object.assign(params ?? {}, { resource, scope: wanted.join(' ') });
  return true;
}
