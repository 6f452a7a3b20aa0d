// The only deep imports into oidc-provider, and where its classes are changed, each with its reason. Written against
// oidc-provider 9.13.3, pinned in package.json: test/engine/internals.test.ts fails when the version moves.
import Provider, {
  type AccessToken,
  type ClientCredentials,
  type Grant,
  type JWKS,
  type KoaContextWithOIDC,
  type Session,
} from 'oidc-provider';
import als from 'oidc-provider/lib/helpers/als.js';
import { issueTokens } from 'oidc-provider/lib/helpers/grant_common.js';
import * as grantHelpers from 'oidc-provider/lib/helpers/grants.js';
import initializeKeys from 'oidc-provider/lib/helpers/initialize_keystore.js';
import Router from 'oidc-provider/lib/helpers/router.js';
import { getDpopJwt } from 'oidc-provider/lib/helpers/validate_dpop.js';
import instance from 'oidc-provider/lib/helpers/weak_cache.js';
import clientAuthentication from 'oidc-provider/lib/shared/client_auth.js';
import { type Clock, epochSeconds } from '../runtime/clock.ts';
import type { Random } from '../runtime/random.ts';
import type { Config } from '../tenant/config.ts';
import { adaptAddresses, type RequestClass } from './addresses.ts';
import type { DetailTypes } from './authorization-details.ts';
import { adaptClients, type ClientClass } from './client-class.ts';
import type { CustomClaims } from './custom-claims.ts';
import { takeGivenParameters } from './given-parameters.ts';
import { adaptIdToken, type IdTokenInstance } from './id-token.ts';
import type { LoginActions } from './login-actions.ts';
import { refreshTokenId } from './refresh-families.ts';
import { countOnce, type ReplayDetectionClass } from './replay-detection.ts';
import { withPlainContexts } from './request-context.ts';
import { readOwnParameters } from './token-parameters.ts';
import type { Nonces, UsedProofs } from './used-proofs.ts';

export const ENGINE_VERSION = '9.13.3';

type EngineMiddleware = (ctx: KoaContextWithOIDC, next: () => Promise<void>) => Promise<void> | void;

/**
 * The engine's client authentication (RFC 6749 §2.3, RFC 7523 §2.2) as middleware: expects
 * `ctx.oidc.params`, leaves `ctx.oidc.client`. Imported because the engine offers it only on its own endpoints, and a copy
 * would drift from it.
 */
export const engineClientAuthentication: readonly EngineMiddleware[] = clientAuthentication;

/** Makes a provider whose requests have their context as a plain member, which the engine has no setting for (request-context.ts). */
export const makeProvider = (...made: ConstructorParameters<typeof Provider>): Provider =>
  withPlainContexts({ router: Router, storage: als }, () => new Provider(...made));

/** What the engine issues tokens from: the shape of its authorization code. */
type GrantSource = InstanceType<Provider['AuthorizationCode']>;

/**
 * Writes the token response for a granted `source` to `ctx.body`, exactly as the engine's own grants do
 * (access token, refresh token, ID token). Imported so that vendor grants cannot drift from it.
 * @param issued `gty`: the grant type as recorded in the tokens; the keys that they are bound to.
 * @throws errors.InvalidGrant when the account is gone.
 */
export function issueTokenResponse(
  provider: Provider,
  ctx: KoaContextWithOIDC,
  source: GrantSource,
  grant: Grant,
  issued: { gty: string; dPoP?: DpopProof | undefined },
): Promise<void> {
  const helpers = Object.fromEntries(
    Object.entries(grantHelpers).map(([name, helper]) => [name, helper.bind(undefined, provider)]),
  );
  return issueTokens(provider, helpers, ctx, source, grant, { ...issued, entityLabel: 'grant' });
}

/**
 * Has the engine sign and verify by other keys from now on. Imported because the engine takes keys only when it is
 * made, and a rotation shall not need a restart.
 * @param jwks private keys, the one that signs first.
 */
export function replaceKeys(provider: Provider, jwks: JWKS): void {
  initializeKeys.call(provider, jwks);
}

/**
 * Has the engine know every algorithm that is enabled, whether or not there are keys for it yet: they are made when an
 * application asks for it. Imported because it else takes as known those of the keys that it was made with.
 */
function knowAlgorithms(provider: Provider): void {
  const { configuration } = instance(provider);
  configuration.idTokenSigningAlgValues = [...configuration.enabledJWA.idTokenSigningAlgValues];
  configuration.authorizationSigningAlgValues = [...configuration.enabledJWA.authorizationSigningAlgValues];
}

/**
 * Has each of the engine's own grants do its work inside of something. Imported because the engine takes handlers of
 * further grants, and gives none of its own.
 */
export function aroundGrants(
  provider: Provider,
  grantTypes: readonly string[],
  around: (work: () => Promise<void>, ctx: KoaContextWithOIDC) => Promise<void>,
): void {
  const { grantTypeHandlers: handlers } = instance(provider);
  for (const grantType of grantTypes) {
    const handle = handlers.get(grantType);
    if (handle === undefined) throw new Error(`the engine has no grant ${grantType}`);
    handlers.set(grantType, (ctx) => around(() => handle(ctx), ctx));
  }
}

interface DpopProof {
  thumbprint: string;
  jti: string;
  iat: number;
}

/**
 * The engine's verification of DPoP proofs (RFC 9449 §4.3), which it offers only to its own endpoints. Imported so that
 * a proof that one endpoint takes is taken by all.
 */
export const engineDpop = grantHelpers as unknown as {
  validateDpop(
    provider: Provider,
    ctx: KoaContextWithOIDC,
    accessToken?: string,
  ): Promise<DpopProof | undefined>;
};

/**
 * Has the engine take these types of `authorization_details` from now on. Imported because the engine takes them only
 * when it is made, and an API may register one at any time.
 */
export function replaceDetailTypes(provider: Provider, types: DetailTypes): void {
  instance(provider).features.richAuthorizationRequests.types = types;
}

interface EngineClasses {
  AccessToken: { prototype: { save(this: AccessToken | ClientCredentials): Promise<string> } };
  ClientCredentials: EngineClasses['AccessToken'];
  Client: ClientClass;
  OIDCContext: RequestClass;
  Grant: EngineModel;
  IdToken: { prototype: IdTokenInstance };
  RefreshToken: EngineModel & { prototype: { generateTokenId(): string } };
  Session: EngineModel & { prototype: Session };
  ReplayDetection: ReplayDetectionClass;
}

/** A class of artifacts, which keeps the members named. */
interface EngineModel {
  readonly IN_PAYLOAD: readonly string[];
}

/**
 * Adapts one provider's classes where its configuration has no switch. Nothing global is touched: the
 * classes are the provider instance's own.
 * @param wallClock what the engine's own dates are by.
 */
export function adaptEngine(
  provider: Provider,
  {
    wallClock,
    config,
    random,
    bind,
    customClaims,
    loginActions,
    used,
    nonces,
  }: {
    wallClock: Clock;
    config: Config;
    random: Random;
    bind: BindToken;
    customClaims: CustomClaims;
    loginActions: LoginActions;
    used: UsedProofs;
    nonces?: Nonces;
  },
): void {
  knowAlgorithms(provider);
  adaptClients((provider as unknown as EngineClasses).Client);
  adaptAddresses((provider as unknown as EngineClasses).OIDCContext, provider, config);
  takeGivenParameters((provider as unknown as EngineClasses).OIDCContext);
  adaptSessions(provider, wallClock);
  adaptIdToken((provider as unknown as EngineClasses).IdToken, { config, customClaims, loginActions });
  adaptTokens(provider, random);
  readOwnParameters(instance(provider).grantTypeParams, () => Provider.ctx?.oidc.body?.grant_type);
  countOnce((provider as unknown as EngineClasses).ReplayDetection, wallClock, {
    used,
    // That a proof was used the engine asks of one that it has verified, and of an assertion before that.
    isProof: (jti) => Provider.ctx !== undefined && getDpopJwt(provider, Provider.ctx)?.payload.jti === jti,
  });
  if (nonces !== undefined) instance(provider).DPoPNonces = nonces;
  bindAccessTokens(provider, bind);
}

function adaptSessions(provider: Provider, wallClock: Clock): void {
  const { Grant, Session } = provider as unknown as EngineClasses;

  // All applications of a session have one `sid`: it names the session, in a logout_hint
  // too. The engine makes one for each. Its uid is neither the cookie's value nor a key to anything.
  Session.prototype.ensureClientContainer = function ensure(this: Session, clientId) {
    this.sidFor(clientId, this.uid);
  };

  // A login in the future (the clock was set back since) counts as too old for `max_age` (OpenID Connect Core §3.1.2.1).
  const { past } = Session.prototype;
  Session.prototype.past = function isPast(this: Session, age) {
    return (this.loginTs ?? 0) > epochSeconds(wallClock) || past.call(this, age);
  };

  // A grant also stores its session, to end with it; a session the connection, to log out there. Both store how the user
  // logged in, and for which organization.
  extendPayload(Grant, [
    'sessionUid',
    'amr',
    'authTime',
    'credentialVersion',
    'factors',
    'organization',
    'connection',
    'actions',
    'transfer',
  ]);
  extendPayload(Session, [
    'connection',
    'credentialVersion',
    'factors',
    'organization',
    'device',
    'lastUsed',
    'providerSession',
    'isTimeUnproved',
    'transfer',
    'methods',
    'bounds',
  ]);
}

/** Binds an access token that is about to be stored. */
export type BindToken = (
  ctx: KoaContextWithOIDC | undefined,
  token: AccessToken | ClientCredentials,
) => Promise<void>;

/** The engine asks about a certificate by what the client is alone; ours is asked for by what the token is for, too. */
function bindAccessTokens(provider: Provider, bind: BindToken): void {
  const { AccessToken, ClientCredentials } = provider as unknown as EngineClasses;
  for (const { prototype } of [AccessToken, ClientCredentials]) {
    const { save } = prototype;
    prototype.save = async function saveBound(this: AccessToken | ClientCredentials) {
      await bind(Provider.ctx, this);
      return save.call(this);
    };
  }
}

function adaptTokens(provider: Provider, random: Random): void {
  const { RefreshToken } = provider as unknown as EngineClasses;

  // A token's value names its family, so that reuse of an old one is recognized without its record.
  RefreshToken.prototype.generateTokenId = () => refreshTokenId(random);

  // What a refresh is for was decided (refresh-targets.ts) when `resource` is among the parameters: the engine would take
  // nothing but what was granted with the token.
  Object.defineProperty(RefreshToken.prototype, 'resourceIndicators', {
    get(this: { resource?: string | string[] }) {
      const decided = Provider.ctx?.oidc.params?.resource;
      return new Set([this.resource ?? [], typeof decided === 'string' ? decided : []].flat());
    },
  });

  // The ID token of a refresh should have no nonce (OpenID Connect Core §12.2): SDKs refuse one that they did not send.
  setPayload(RefreshToken, [...RefreshToken.IN_PAYLOAD.filter((member) => member !== 'nonce'), 'bounds']);
}

/** Has a model keep more members. */
function extendPayload(model: EngineModel, members: readonly string[]): void {
  setPayload(model, [...model.IN_PAYLOAD, ...members]);
}

/** Has a model keep these members, and read no others from what was stored. */
function setPayload(model: EngineModel, members: readonly string[]): void {
  Object.defineProperty(model, 'IN_PAYLOAD', { get: () => members });
}
