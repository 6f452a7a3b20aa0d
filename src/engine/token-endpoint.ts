// /oauth/token and /oauth/revoke around the engine: JSON and form bodies alike, the vendor's parameter
// names, and the vendor's words for what goes wrong.
import type { Context } from 'koa';
import type { KoaContextWithOIDC } from 'oidc-provider';
import { bodyFields } from '../http/body-fields.ts';
import { AuthError, oauthShape } from '../http/errors.ts';
import type { EventType } from '../records/log-events.ts';
import type { Events } from '../tenant/events.ts';
import { namedApi, toResource } from './audience.ts';
import type { EnterEngine } from './entrance.ts';
import type { EngineFailures } from './failures.ts';
import { isReuse, vendorError } from './failures.ts';
import type { SecondFactor } from './second-factor.ts';
import type { VendorGrant } from './tokens.ts';

/** Grants for which `audience` chooses the API; with the others it was chosen at /authorize. */
const choosesAudience = (grantType: string | undefined) =>
  grantType !== 'authorization_code' && grantType !== 'refresh_token';

export interface TokenEndpoint {
  /**
   * `POST /oauth/token`.
   * @param fields the request's parameters; those of its body by default.
   */
  token(ctx: Context, fields?: Record<string, string>): Promise<void>;
  /** `POST /oauth/revoke` (RFC 7009). */
  revoke(ctx: Context): Promise<void>;
}

export interface TokenEndpointDependencies {
  failures: EngineFailures;
  enter: EnterEngine;
  events: Events;
  grants: readonly Pick<VendorGrant, 'grantType' | 'events'>[];
  secondFactor: Pick<SecondFactor, 'error'>;
}

const STANDARD_FAILURES: ReadonlyMap<string, EventType> = new Map([
  ['authorization_code', 'feacft'],
  ['refresh_token', 'fertft'],
  ['client_credentials', 'feccft'],
]);

/** No failures: the exchange goes on by another request. */
const GOES_ON = ['authorization_pending', 'slow_down'];

/** Feeds the engine's token endpoints and words their failures. */
export function tokenEndpoint({
  failures,
  enter,
  events,
  grants,
  secondFactor,
}: TokenEndpointDependencies): TokenEndpoint {
  const goesOn = new Set([...GOES_ON, secondFactor.error]);
  const failureEvent = (grantType: string | undefined): EventType | undefined =>
    STANDARD_FAILURES.get(grantType ?? '') ??
    grants.find((grant) => grant.grantType === grantType)?.events.failure;
  const answer = async (ctx: Context, fields: Record<string, string>): Promise<AuthError | undefined> => {
    replayAsForm(ctx, engineFields(fields));
    // The engine would render its errors as HTML for a browser; these endpoints have none.
    ctx.req.headers.accept = 'application/json';
    await enter(ctx);
    if (ctx.status < 400) return undefined;
    const error = vendorError(failures.of(ctx), fields.grant_type);
    if (error !== undefined) oauthShape(ctx, error);
    return error;
  };
  return {
    token: async (ctx, fields = bodyFields(ctx)) => {
      ctx.url = '/oauth/token';
      const error = await answer(ctx, fields);
      if (error === undefined || goesOn.has(error.error)) return;
      const type =
        fields.grant_type === 'refresh_token' && isReuse(failures.of(ctx))
          ? 'ferrt'
          : failureEvent(fields.grant_type);
      if (type !== undefined)
        events.record({ type, ...partiesOf(ctx), description: error.error_description });
    },
    revoke: async (ctx) => {
      ctx.url = '/oauth/revoke';
      await answer(ctx, bodyFields(ctx));
      if (ctx.status < 400) ctx.type = 'application/json';
    },
  };
}

/** Which application and user a failed exchange was of, as far as the engine got to know. */
function partiesOf(ctx: Context): { client_id?: string; user_id?: string; ip: string } {
  const { client, entities } = (ctx as { oidc?: Partial<KoaContextWithOIDC['oidc']> }).oidc ?? {};
  const { Account, AuthorizationCode, RefreshToken } = entities ?? {};
  const userId = Account?.accountId ?? AuthorizationCode?.accountId ?? RefreshToken?.accountId;
  return {
    ip: ctx.ip,
    ...(client !== undefined && { client_id: client.clientId }),
    ...(userId !== undefined && { user_id: userId }),
  };
}

function engineFields({ audience, resource, ...fields }: Record<string, string>): Record<string, string> {
  const api = namedApi({ audience, resource });
  if ('fault' in api) throw new AuthError(400, 'invalid_target', api.fault);
  // An `audience` beside a code or a refresh token says what the client believes and changes nothing; a `resource`
  // must be among those that were granted (RFC 8707 §2.2), which the engine checks.
  const wanted = choosesAudience(fields.grant_type) ? api.identifier : resource;
  return wanted ? { ...fields, resource: toResource(wanted) } : fields;
}

/**
 * Makes the request look unread, with a form body. The engine reads only forms, straight from the
 * request; given a body parsed upstream it works, but complains on the console.
 */
function replayAsForm(ctx: Context, fields: Record<string, string>): void {
  const body = Buffer.from(new URLSearchParams(fields).toString());
  ctx.req.headers['content-type'] = 'application/x-www-form-urlencoded';
  ctx.req.headers['content-length'] = String(body.length);
  delete ctx.req.headers['transfer-encoding'];
  Object.defineProperties(ctx.req, {
    readable: { value: true, configurable: true },
    iterator: { value: () => [body], configurable: true },
  });
}
