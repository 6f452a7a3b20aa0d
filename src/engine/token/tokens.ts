// Grant types beyond those of oidc-provider: the interface for features, and their registration.
import type { Context } from 'koa';
import type Provider from 'oidc-provider';
import { errors, type KoaContextWithOIDC } from 'oidc-provider';
import type { z } from 'zod';
import type { ClientCertificates } from '../../capabilities/tls/client-certificates.ts';
import { AuthError } from '../../http/errors.ts';
import type { EventType } from '../../records/log-events.ts';
import type { Login } from '../../users/login.ts';
import { type ExchangeLimits, exchangeEvents, exchangeLimits } from '../admission/exchange-context.ts';
import { organizationAtToken } from '../admission/organization-parameter.ts';
import type { CompletedRequest } from '../admission/second-factor.ts';
import type { EngineFailures } from '../base/failures.ts';
import { toAudience } from '../base/requested-audience.ts';
import { certificateConfirmation } from '../binding/certificate-binding.ts';
import {
  confirmationOfKeys,
  type ProofOfPossession,
  type ProvenKeys,
  refuseUnbound,
} from '../binding/proof-of-possession.ts';
import { applyForwardedAddress } from '../client/client-authentication.ts';
import { refuseNoncompliant } from '../client/compliance.ts';
import { admittedResource, refuseThirdParty, requestedResource } from './requested-api.ts';
import { respondWithTokens, type TokenDependencies, type TokenIssuance } from './token-response.ts';

/** A token request of a vendor grant, its client authenticated. */
export interface GrantRequest {
  clientId: string;
  /** The parameters of the grant, as sent. */
  params: Readonly<Record<string, string | undefined>>;
  ip: string;
  /** The user's address; undefined when a confidential application does not send it. */
  userAddress: string | undefined;
  /** The identifier of the browser, if a page of the application made the request. */
  browser?: string | undefined;
  /** The request, for rate limits. */
  ctx: Context;
}

export interface GrantedLogin {
  login: Login;
  /** An earlier token request that this one completes: tokens are issued for its scopes, API and grant type. */
  completes?: CompletedRequest;
  /** Whether the login was already counted and logged when its session was made. */
  isRecorded?: boolean;
  /** The organization that the login is for, by id or name; it takes precedence over the request's. */
  organization?: string | undefined;
  /** The limits and claims of a token exchange. */
  exchangeLimits?: ExchangeLimits;
  /** Further members of the token response. */
  extra?: Record<string, unknown>;
}

/** The answer of a grant that does not issue tokens of ours, but for example the token of a connected account. */
export interface GrantAnswer {
  /** The token response. */
  answer: Readonly<Record<string, unknown>>;
  userId: string;
  /** The name of the connection that the answer comes from. */
  connection: string;
}

/** A token request that completes an earlier one: what the tokens are for is known, and its user not yet authenticated. */
export interface BegunGrant {
  completes: CompletedRequest;
  /** Authenticates the user, after the request was admitted. @throws AuthError when the user is not authenticated. */
  authenticate(): Promise<Omit<GrantedLogin, 'completes'>>;
}

/**
 * A grant type beyond those of oidc-provider. The feature that declares it authenticates the user; this folder does
 * everything else. Whatever can refuse the request without knowing its user is asked before the user is
 * authenticated, because authenticating writes: it uses up codes, creates users and confirms authenticators.
 * @template D the dependencies of the feature.
 */
export type GrantDeclaration<D> = GrantTraits &
  (
    | {
        /** @throws AuthError when the user is not authenticated. */
        authenticate: (deps: D, request: GrantRequest) => Promise<GrantedLogin | GrantAnswer>;
        begin?: never;
      }
    | {
        /**
         * For requests that complete earlier ones: reads the earlier one, and at most uses up its code. @throws
         * AuthError when there is none.
         */
        begin: (deps: D, request: GrantRequest) => Promise<BegunGrant>;
        authenticate?: never;
      }
  );

interface GrantTraits {
  /**
   * The complete `grant_type`. One that begins with a slash is completed with the tenant's `vendor_host`:
   * `/oauth/grant-type/x` is `http://<vendor_host>/oauth/grant-type/x`.
   */
  grantType: string;
  /** One line, for the OpenAPI document. */
  summary: string;
  /** Its parameters, beside scope, audience and client authentication. */
  parameters: z.ZodObject;
  /** As recorded in the access token's `gty`. */
  gty: string;
  /** Log events of success and failure. */
  events: { success?: EventType; failure: EventType };
  // docs/decisions/tokens.md#third-party-applications-cannot-use-grants-that-authenticate-a-user-at-the-token-endpoint
  /**
   * Whether its logins were made at our pages, which have asked for consent, and for a second factor where one was
   * needed. Other grants are refused to third-party applications.
   */
  isFromPages?: true;
  /** Whether `/co/authenticate` takes its credentials as well, for a login ticket. */
  givesTicket?: true;
}

/** Returns the `grant_type` as clients send it. */
export function grantTypeOf(declaredType: string, vendorHost: string): string {
  return declaredType.startsWith('/') ? `http://${vendorHost}${declaredType}` : declaredType;
}

/** A declared grant type with its dependencies bound. */
export interface VendorGrant {
  /** Contains the tenant's `vendor_host`, so it is read again when that changes. */
  readonly grantType: string;
  /** Names of the parameters it reads, beside scope, audience and client authentication. */
  parameters: string[];
  /** As recorded in the access token's `gty`. */
  gty: string;
  /** Log events of success and failure. */
  events: { success?: EventType; failure: EventType };
  /** @see GrantTraits.isFromPages */
  isFromPages: boolean;
  /** @see GrantTraits.givesTicket */
  givesTicket: boolean;
  /** Whether its requests complete earlier ones. */
  completes: boolean;
  /** Reads the earlier request, if it completes one. */
  begin(request: GrantRequest): Promise<{
    completes?: CompletedRequest;
    /** @throws AuthError when the user is not authenticated. */
    authenticate(): Promise<GrantedLogin | GrantAnswer>;
  }>;
}

export interface VendorGrantDependencies extends TokenDependencies {
  failures: EngineFailures;
  possession: Pick<ProofOfPossession, 'readProofs'>;
  certificates: Pick<ClientCertificates, 'of'>;
}

export function registerVendorGrant(
  deps: VendorGrantDependencies,
  provider: Provider,
  grant: VendorGrant,
): void {
  const parameters = new Set(['scope', 'resource', 'organization', ...grant.parameters]);
  provider.registerGrantType(
    grant.grantType,
    async (ctx) => {
      const userAddress = applyForwardedAddress(ctx, ctx.oidc.client);
      const keys = await deps.possession.readProofs(ctx);
      const request: GrantRequest = {
        clientId: ctx.oidc.client.clientId,
        params: ctx.oidc.params as Record<string, string | undefined>,
        ip: ctx.ip,
        userAddress,
        ctx,
      };
      try {
        const admit = admission(deps, ctx, grant, keys);
        const granted = await authenticated(deps, ctx, grant, { request, keys, admit });
        if ('answer' in granted) sendGrantAnswer(deps, request, grant, granted);
        else await sendTokens(deps, ctx, grant, { granted, userAddress, keys, admit });
      } catch (thrown) {
        if (!(thrown instanceof AuthError)) throw thrown;
        // oidc-provider only passes on errors of its own. Ours is recorded, and replaces its answer afterwards.
        deps.failures.record(ctx, thrown);
        throw new errors.CustomOIDCProviderError(thrown.error, thrown.error_description, { cause: thrown });
      }
    },
    parameters,
  );
}

/**
 * Checks what a request asks for, whoever its user is: application, organization, API, keys.
 * @param completes the earlier request whose scopes and API it is for.
 * @param idOrName the organization, where it is not the request's parameter.
 * @returns the id of the organization.
 * @throws AuthError or errors.OIDCProviderError when the request is refused.
 */
type Admit = (completes: CompletedRequest | undefined, idOrName?: string) => Promise<string | undefined>;

function admission(
  deps: VendorGrantDependencies,
  ctx: KoaContextWithOIDC,
  { isFromPages }: VendorGrant,
  keys: ProvenKeys,
): Admit {
  const { params = {}, client = {} } = ctx.oidc;
  const parameter = typeof params.organization === 'string' ? params.organization : undefined;
  return async (completes, idOrName = parameter) => {
    if (completes !== undefined)
      Object.assign(params, { scope: completes.scope, resource: completes.resource });
    const organization = await organizationAtToken(deps.config, client, idOrName, completes);
    await refuseUnboundRequest(deps, ctx, keys);
    await admittedResource(deps, ctx, isFromPages);
    return organization;
  };
}

// docs/decisions/tokens.md#whatever-can-refuse-a-token-request-is-asked-before-its-user-is-authenticated
/** Authenticates the user of a request, after everything that can refuse it without knowing the user. */
async function authenticated(
  deps: VendorGrantDependencies,
  ctx: KoaContextWithOIDC,
  grant: VendorGrant,
  { request, keys, admit }: { request: GrantRequest; keys: ProvenKeys; admit: Admit },
): Promise<GrantedLogin | GrantAnswer> {
  refuseThirdParty(ctx, grant.isFromPages);
  if (grant.completes) refuseWeakRequest(deps, ctx, keys);
  else await admit(undefined);
  const { completes, authenticate } = await grant.begin(request);
  if (completes === undefined) return authenticate();
  const organization = await admit(completes);
  const { clientId } = request;
  const refusal = await deps.settle.refusal(completes.firstFactor, { clientId, organization });
  if (refusal !== undefined) throw refusal;
  return { ...(await authenticate()), completes } as GrantedLogin;
}

async function sendTokens(
  deps: VendorGrantDependencies,
  ctx: KoaContextWithOIDC,
  grant: VendorGrant,
  {
    granted: { login, completes, organization: named, isRecorded, exchangeLimits: exchanged, extra },
    admit,
    ...request
  }: { granted: GrantedLogin; admit: Admit } & Pick<TokenIssuance, 'userAddress' | 'keys'>,
): Promise<void> {
  if (exchanged !== undefined) exchangeLimits.set(ctx, exchanged);
  // Whoever asks for the tokens need not be the user, who logged in at our pages elsewhere.
  const presence = grant.isFromPages ? 'absent' : login.presence;
  await respondWithTokens(
    deps,
    ctx,
    { ...login, presence },
    {
      ...request,
      gty: completes?.gty ?? grant.gty,
      event: exchangeEvents.of(ctx)?.success ?? grant.events.success,
      organization: await admit(completes, named),
      isFromPages: grant.isFromPages,
      isRecorded,
      authorizationDetails: completes?.authorizationDetails,
    },
  );
  // Nobody has logged in here. An ID token would say so, perhaps of a session that has ended, and could be
  // exchanged itself.
  if (exchanged !== undefined) delete (ctx.body as { id_token?: string }).id_token;
  if (extra !== undefined) Object.assign(ctx.body as object, extra);
}

function sendGrantAnswer(
  { events }: Pick<VendorGrantDependencies, 'events'>,
  { clientId: client_id, ip, ctx }: GrantRequest,
  { events: { success: successEvent } }: Pick<VendorGrant, 'events'>,
  { answer, userId: user_id, connection }: GrantAnswer,
): void {
  ctx.body = answer;
  const type = exchangeEvents.of(ctx)?.success ?? successEvent;
  if (type !== undefined) events.record({ type, client_id, user_id, connection, ip });
}

/**
 * Refuses a request whose tokens the application's compliance level does not allow, before its code or ticket is
 * used up.
 */
function refuseWeakRequest(deps: VendorGrantDependencies, ctx: KoaContextWithOIDC, keys: ProvenKeys): void {
  const { client } = ctx.oidc;
  if (client === undefined) return;
  const confirmation = certificateConfirmation(deps, ctx, { client, api: undefined });
  const boundTo = { dpop: keys.dPoP !== undefined, mtls: confirmation['x5t#S256'] !== undefined };
  refuseNoncompliant(client, undefined, boundTo);
}

/** Refuses a request whose tokens have to be bound to a key when it proves none. @throws errors.InvalidDpopProof */
async function refuseUnboundRequest(
  deps: VendorGrantDependencies,
  ctx: KoaContextWithOIDC,
  keys: ProvenKeys,
): Promise<void> {
  const resource = await requestedResource(deps, ctx);
  const api = resource === undefined ? undefined : await deps.config.resourceServer(toAudience(resource));
  const { client } = ctx.oidc;
  if (client === undefined) return;
  const proved = { ...confirmationOfKeys(keys), ...certificateConfirmation(deps, ctx, { client, api }) };
  refuseUnbound(ctx, client, api, proved);
}
