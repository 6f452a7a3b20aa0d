// Changes of the engine's classes, for what its configuration has no switch for. Each has its reason beside it.

import Provider, {
  type AccessToken,
  type ClientCredentials,
  type KoaContextWithOIDC,
  type Session,
} from 'oidc-provider';
import { authenticationClasses } from '../../records/authentication-classes.ts';
import { type Clock, epochSeconds } from '../../runtime/clock.ts';
import type { Random } from '../../runtime/secrets.ts';
import type { Config } from '../../tenant/config.ts';
import { loginRequirements } from '../admission/login-requirements.ts';
import { makeReplayCheckAtomic, type ReplayDetectionClass } from '../authorize/replay-detection.ts';
import type { Nonces } from '../base/internals.ts';
import {
  acceptAllAlgorithms,
  grantParameters,
  isProofOf,
  keepCallbackQueries,
  replaceNonces,
} from '../base/internals.ts';
import { useParsedBody } from '../base/parsed-body.ts';
import { adaptAddresses, type RequestClass } from '../binding/addresses.ts';
import type { BindToken } from '../binding/certificate-binding.ts';
import type { UsedProofs } from '../binding/used-proofs.ts';
import type { CustomClaims } from '../claims/custom-claims.ts';
import { adaptClients, type ClientClass } from '../client/client-class.ts';
import type { LoginActions } from '../login/login-actions.ts';
import { refreshTokenId } from '../session/refresh-families.ts';
import { presenceOf } from '../session/user-session.ts';
import { adaptIdToken, type IdTokenClass } from '../token/id-token.ts';

/** The classes of a provider that are changed. */
interface EngineClasses {
  AccessToken: { prototype: { save(this: AccessToken | ClientCredentials): Promise<string> } };
  ClientCredentials: EngineClasses['AccessToken'];
  Client: ClientClass;
  OIDCContext: RequestClass;
  Grant: EngineModel;
  IdToken: IdTokenClass;
  RefreshToken: EngineModel & { prototype: { generateTokenId(): string } };
  Session: EngineModel & { prototype: Session };
  ReplayDetection: ReplayDetectionClass;
}

/** A class of artifacts, with the members that it stores. */
interface EngineModel {
  readonly IN_PAYLOAD: readonly string[];
}

/** The package's types do not declare these classes. */
const classesOf = (provider: Provider) => provider as unknown as EngineClasses;

/**
 * Changes the classes of one provider. Nothing global is touched: each provider has its own.
 * @param wallClock the clock of the engine's own dates.
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
    usedProofs,
    nonces,
  }: {
    wallClock: Clock;
    config: Config;
    random: Random;
    bind: BindToken;
    customClaims: CustomClaims;
    loginActions: LoginActions;
    usedProofs: UsedProofs;
    nonces?: Nonces;
  },
): void {
  const { Client, IdToken, OIDCContext, ReplayDetection } = classesOf(provider);
  acceptAllAlgorithms(provider);
  keepCallbackQueries(provider);
  adaptClients(Client);
  adaptAddresses(OIDCContext, provider, config);
  useParsedBody(OIDCContext);
  stateRequestedClass(OIDCContext, config);
  adaptSessions(provider, wallClock);
  adaptIdToken(IdToken, { config, customClaims, loginActions });
  adaptTokens(provider, random);
  readGrantParameters(grantParameters(provider), () => Provider.ctx?.oidc.body?.grant_type);
  makeReplayCheckAtomic(ReplayDetection, wallClock, {
    usedProofs,
    // The engine checks the use of a DPoP proof after it has verified it, but that of an assertion before.
    isProof: (jti) => Provider.ctx !== undefined && isProofOf(provider, Provider.ctx, jti),
  });
  if (nonces !== undefined) replaceNonces(provider, nonces);
  bindAccessTokens(provider, bind);
}

/**
 * A login states the requested context class that it met, in the order of the request (OpenID Connect Core §3.1.2.1),
 * or else the class of its session.
 */
function stateRequestedClass({ prototype }: RequestClass, config: Pick<Config, 'settings'>): void {
  Object.defineProperty(prototype, 'acr', {
    get(this: KoaContextWithOIDC['oidc']): string | undefined {
      const { amr = [], acr } = this.session ?? {};
      const { isMet } = authenticationClasses(config.settings().tenant);
      return loginRequirements(this.params).acrValues.find((one) => isMet(one, amr)) ?? acr;
    },
  });
}

function adaptSessions(provider: Provider, wallClock: Clock): void {
  const { Grant, Session } = classesOf(provider);

  // All applications of a session share one `sid`, which identifies the session, in a logout_hint too. The engine
  // makes one per application. The session's uid is neither the cookie's value nor a key to anything.
  Session.prototype.ensureClientContainer = function ensure(this: Session, clientId) {
    this.sidFor(clientId, this.uid);
  };

  // A login in the future (the clock was set back since) counts as too old for `max_age` (OpenID Connect Core §3.1.2.1).
  // So does one in which nobody was there: it proves no time, and the user can log in.
  const { past } = Session.prototype;
  Session.prototype.past = function isPast(this: Session, age) {
    const isFuture = (this.loginTs ?? 0) > epochSeconds(wallClock);
    return (age !== undefined && presenceOf(this) === 'absent') || isFuture || past.call(this, age);
  };

  // A grant also stores its session, with which it ends; a session stores its connection, for the logout there.
  // Both store how the user logged in, and for which organization.
  extendPayload(Grant, [
    'sessionUid',
    'amr',
    'authTime',
    'presence',
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
    'presence',
    'isTimeUnproved',
    'transfer',
    'methods',
    'bounds',
  ]);
}

/** The engine binds tokens to a certificate by the client's settings alone; here the API's settings count, too. */
function bindAccessTokens(provider: Provider, bind: BindToken): void {
  const { AccessToken, ClientCredentials } = classesOf(provider);
  for (const { prototype } of [AccessToken, ClientCredentials]) {
    const { save } = prototype;
    prototype.save = async function saveBound(this: AccessToken | ClientCredentials) {
      await bind(Provider.ctx, this);
      return save.call(this);
    };
  }
}

function adaptTokens(provider: Provider, random: Random): void {
  const { RefreshToken } = classesOf(provider);

  // A token's value contains its family, so that reuse of an old one is recognized without its record.
  RefreshToken.prototype.generateTokenId = () => refreshTokenId(random);

  // refresh-targets.ts has decided which API a refresh is for and left it in the parameters as `resource`. The
  // engine alone would only accept what was granted with the token.
  Object.defineProperty(RefreshToken.prototype, 'resourceIndicators', {
    get(this: { resource?: string | string[] }) {
      const decided = Provider.ctx?.oidc.params?.resource;
      return new Set([this.resource ?? [], typeof decided === 'string' ? decided : []].flat());
    },
  });

  // The ID token of a refresh should have no nonce (OpenID Connect Core §12.2): SDKs refuse one that they did not send.
  setPayload(RefreshToken, [...RefreshToken.IN_PAYLOAD.filter((member) => member !== 'nonce'), 'bounds']);
}

/** Makes a model store further members. */
function extendPayload(model: EngineModel, members: readonly string[]): void {
  setPayload(model, [...model.IN_PAYLOAD, ...members]);
}

/** Makes a model store these members, and read only these. */
function setPayload(model: EngineModel, members: readonly string[]): void {
  Object.defineProperty(model, 'IN_PAYLOAD', { get: () => members });
}

// Limits the parameters of a token request that the engine reads.

/**
 * Makes the engine read only the parameters of the request's own grant. By default it reads those of all grants,
 * searches them several times, and then drops those of the other grants.
 * @param byGrantType the engine's names of parameters by grant type, and those of all grants under `undefined`.
 * @param grantType returns the `grant_type` of the current request, as sent.
 */
export function readGrantParameters(
  byGrantType: ReadonlyMap<string | undefined, Set<string>>,
  grantType: () => unknown,
): void {
  const all = byGrantType.get(undefined);
  if (all === undefined) throw new Error('the engine keeps its parameters in another way');
  all[Symbol.iterator] = () => {
    const requested = grantType();
    const ownParameters = typeof requested === 'string' ? byGrantType.get(requested) : undefined;
    return (ownParameters ?? all).values();
  };
}
