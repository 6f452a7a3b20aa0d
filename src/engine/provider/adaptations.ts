// Changes of the engine's classes, for what its configuration has no switch for. Each has its reason beside it.

import type { Context } from 'koa';
import Provider, {
  type AccessToken,
  type Client,
  type ClientCredentials,
  errors,
  type KoaContextWithOIDC,
  type Session,
} from 'oidc-provider';
import { isCallback } from '../../http/schemes.ts';
import { authenticationClasses } from '../../records/users/authentication-classes.ts';
import { type Clock, epochSeconds } from '../../runtime/clock.ts';
import type { Random } from '../../runtime/secrets.ts';
import { UniqueKeyError } from '../../store/contract.ts';
import type { Config } from '../../tenant/config.ts';
import { allowsRedirectUri } from '../admission/admission.ts';
import { loginRequirements } from '../admission/second-factor.ts';
import { useParsedBody } from '../base/entrance.ts';
import {
  acceptAllAlgorithms,
  grantParameters,
  isProofOf,
  keepCallbackQueries,
  type Nonces,
  replaceNonces,
} from '../base/internals.ts';
import { readExtensions } from '../base/request-extensions.ts';
import { replayKey } from '../base/request-replay.ts';
import type { BindToken } from '../binding/certificate-binding.ts';
import { urlAtProofOrigin } from '../binding/proof-of-possession.ts';
import type { UsedProofs } from '../binding/used-proofs.ts';
import type { CustomClaims } from '../claims/claims.ts';
import type { LoginActions } from '../login/login-actions.ts';
import { refreshTokenId } from '../session/refresh-families.ts';
import { presenceOf } from '../session/sessions.ts';
import { adaptIdToken, type IdTokenClass } from '../token/access-token.ts';

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
  adaptClients(Client, config);
  adaptAddresses(OIDCContext, provider, config);
  useParsedBody(OIDCContext);
  stateRequestedClass(OIDCContext, config);
  adaptSessions(provider, wallClock, config);
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

function adaptSessions(provider: Provider, wallClock: Clock, config: Pick<Config, 'settings'>): void {
  const { Grant, Session } = classesOf(provider);

  // The engine gives the cookie of a session that is not transient an end, and asks each time it sets the cookie. What was
  // decided for a session by itself is stored as its cookieMode; all others are as the tenant says.
  // docs/understand/decisions/sessions-logout.md#the-tenants-session_cookiemode-decides-each-time-the-session-cookie-is-set
  setPayload(Session, [...Session.IN_PAYLOAD.filter((member) => member !== 'transient'), 'cookieMode']);
  Object.defineProperty(Session.prototype, 'transient', {
    get(this: { cookieMode?: string }): boolean {
      return (this.cookieMode ?? config.settings().tenant.session_cookie?.mode) === 'non-persistent';
    },
    set(this: { cookieMode?: string | undefined }, transient: boolean | undefined) {
      if (transient === undefined) this.cookieMode = undefined;
      else this.cookieMode = transient ? 'non-persistent' : 'persistent';
    },
  });

  // All applications of a session share one `sid`, which identifies the session, in a logout_hint too. The engine
  // makes one per application. The session's uid is neither the cookie's value nor a key to anything.
  // docs/understand/decisions/sessions-logout.md#all-applications-of-a-session-get-the-same-sid
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

  // token/refresh.ts has decided which API a refresh is for and left it in the parameters as `resource`. The
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
    const endpointParameters = typeof requested === 'string' ? byGrantType.get(requested) : undefined;
    return (endpointParameters ?? all).values();
  };
}

// The addresses that the tenant is served at: its own, those of its custom domains, and the one of mutual TLS. Each endpoint
// has the same path at all of them.

/** The members of the engine's request class that are changed here. */
interface RequestClass {
  prototype: {
    clientJwtAuthExpectedAudience(this: { ctx: { path: string } }): Set<string>;
    urlFor(name: string, options?: Record<string, unknown>): string;
  };
}

/** Teaches the engine the origins beside the issuer's own. @param model the engine's request class. */
function adaptAddresses(
  { prototype }: RequestClass,
  provider: Provider,
  config: Pick<Config, 'customOrigins'>,
): void {
  // Links are made from the issuer, never from a request's Host header. The engine asks for the URL of its own
  // route without options when it verifies a DPoP proof, which may have been made for a custom domain.
  prototype.urlFor = function urlFor(this: { route?: string; ctx: Context }, name, options) {
    const address = provider.urlFor(name, options);
    return options === undefined && name === this.route
      ? urlAtProofOrigin(this.ctx, config.customOrigins(), address)
      : address;
  } as RequestClass['prototype']['urlFor'];

  const { clientJwtAuthExpectedAudience } = prototype;
  const { origin: own } = new URL(provider.issuer);
  prototype.clientJwtAuthExpectedAudience = function audiences(this: { ctx: { path: string } }) {
    const accepted = clientJwtAuthExpectedAudience.call(this).add(provider.urlFor('token'));
    // The URL of the requested endpoint, which may be one of ours (CIBA Core §7.1).
    accepted.add(`${own}${this.ctx.path}`);
    const paths = [...accepted].filter((one) => one !== provider.issuer).map((one) => new URL(one).pathname);
    for (const origin of config.customOrigins()) for (const path of paths) accepted.add(`${origin}${path}`);
    // SDKs sign assertions for the issuer, with or without its slash.
    // docs/understand/decisions/clients-keys.md#a-client-assertion-may-name-the-issuer-or-the-token-endpoint-and-is-accepted-once
    return accepted.add(provider.issuer.replace(/\/$/, ''));
  };
}

// Changes of the engine's client class, for what client metadata cannot express.

/** The members of the engine's client class that are changed. */
interface ClientClass {
  find(id: string): Promise<Client | undefined>;
  adapter: { find(id: string): Promise<object | undefined> };
  prototype: Client & { includeSid(): boolean };
  Schema: { prototype: { redirectUris(uris?: string[], label?: string): void } };
}

interface SchemaInstance {
  redirect_uris?: string[];
  invalidate(message: string): never;
}

/** Changes the client class of one engine. @param Client its client class. */
function adaptClients(Client: ClientClass, config: Pick<Config, 'knownOrganization' | 'settings'>): void {
  cacheClients(Client);

  // Every ID token carries `sid` (docs/reference/wire/token.md), not only those of back-channel logout clients.
  Client.prototype.includeSid = () => true;

  // The engine answers invalid_request; SDKs expect unauthorized_client with this text.
  const { responseTypeAllowed } = Client.prototype;
  Client.prototype.responseTypeAllowed = function allowed(this: Client, type) {
    if (responseTypeAllowed.call(this, type)) return true;
    const grantType = type.split(' ').some((part) => part !== 'code') ? 'implicit' : 'authorization_code';
    throw new errors.UnauthorizedClient(`Grant type '${grantType}' not allowed for the client.`);
  };

  // The API decides which types of authorization_details an application may ask for, not metadata of the
  // application.
  Object.defineProperty(Client.prototype, 'authorizationDetailsTypes', {
    get: () => undefined,
    set: () => undefined,
  });

  // The engine's own rule includes `localhost`, and depends on an application_type that forbids other callbacks.
  Client.prototype.redirectUriAllowed = function allowed(this: Client, address) {
    return allowsRedirectUri(config, this, address, Provider.ctx?.oidc.params?.organization);
  };

  // A fault that is found before the engine sees a request is answered as if the engine had found it: at the
  // application, in its response mode. This method is the first that the engine calls on a client.
  const { responseModeAllowed } = Client.prototype;
  Client.prototype.responseModeAllowed = function allowed(this: Client, ...args) {
    const { refused } = readExtensions(Provider.ctx?.oidc.params ?? {});
    if (refused !== undefined) throw new errors.CustomOIDCProviderError(refused.error, refused.description);
    return responseModeAllowed.apply(this, args);
  };

  // An application may have http, localhost and custom-scheme callbacks side by side
  // (docs/reference/wire/authorize.md), which the engine's rules per application_type forbid.
  Client.Schema.prototype.redirectUris = function redirectUris(this: SchemaInstance, uris, label) {
    for (const uri of uris ?? this.redirect_uris ?? []) {
      if (!isCallback(uri)) {
        this.invalidate(`${label ?? 'redirect_uris'} must be absolute URIs without a fragment`);
      }
    }
  };
}

/**
 * Keeps the client that the engine made of its metadata for as long as the adapter gives the same metadata. The engine itself
 * serializes and hashes the metadata at every request to find its client again, and keeps a number of them only.
 */
function cacheClients(Client: ClientClass): void {
  const find = Client.find.bind(Client);
  const cache = new WeakMap<object, Client>();
  Client.find = async (id) => {
    const metadata = typeof id === 'string' && id !== '' ? await Client.adapter.find(id) : undefined;
    const cached = metadata && cache.get(metadata);
    if (cached !== undefined) return cached;
    const client = await find(id);
    if (client !== undefined) matchKeysWithoutId(client);
    if (metadata !== undefined && client !== undefined) cache.set(metadata, client);
    return client;
  };
}

// The keys of clients that were registered without a `kid`.

interface ClientKeys {
  selectForVerify(criteria: { alg: string; kid?: string | undefined }): { kid?: string }[];
}

/**
 * Lets an assertion with a `kid` be verified by a key that was registered without one: `kid` is only a hint (RFC 7515 §4.1.4),
 * and the engine accepts only a key with exactly that `kid`.
 */
function matchKeysWithoutId(client: Client): void {
  // Missing from the engine's types.
  const { asymmetricKeyStore: keys } = client as unknown as { asymmetricKeyStore: ClientKeys };
  // The engine may hand out the same client object again; wrapping it each time would make every look-up slower.
  if (Object.hasOwn(keys, 'selectForVerify')) return;
  const select = keys.selectForVerify.bind(keys);
  keys.selectForVerify = ({ kid, ...criteria }) => {
    const found = select({ ...criteria, kid });
    if (found.length > 0 || kid === undefined) return found;
    return select(criteria).filter((key) => key.kid === undefined);
  };
}

// Records what the engine accepts only once: the `jti` of a client's assertion (RFC 7523 §3), and that of a DPoP
// proof (RFC 9449 §11.1).

/** The engine's class of records of use. */
interface ReplayDetectionClass {
  unique(iss: string, jti: string, exp: number): Promise<boolean>;
  instantiate(payload: object): { save(ttlSeconds: number): Promise<unknown> };
}

/**
 * Makes the check atomic. The engine first checks whether a `jti` was used and then stores it, so two simultaneous
 * requests would both be accepted.
 * @param wallClock the clock that dates in JWTs are compared with.
 * @param proofs the record of used DPoP proofs, and a function that tells whether a `jti` is that of the current
 *   request's proof.
 */
function makeReplayCheckAtomic(
  model: ReplayDetectionClass,
  wallClock: Clock,
  { usedProofs, isProof }: { usedProofs: UsedProofs; isProof(jti: string): boolean },
): void {
  model.unique = async (iss, jti, exp) => {
    if (isProof(jti)) return usedProofs.recordUse(iss, jti);
    const used = model.instantiate({ jti: replayKey([iss, jti]), iss });
    try {
      await used.save(exp - epochSeconds(wallClock));
      return true;
    } catch (thrown) {
      if (thrown instanceof UniqueKeyError) return false;
      throw thrown;
    }
  };
}
