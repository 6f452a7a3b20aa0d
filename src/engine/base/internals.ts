// The only deep imports into oidc-provider, each with its reason. Written against oidc-provider 9.13.3, pinned in
// package.json: test/engine/internals.test.ts fails when the version moves.
import Provider, { type Grant, type JWKS, type KoaContextWithOIDC } from 'oidc-provider';
import als from 'oidc-provider/lib/helpers/als.js';
import { issueTokens } from 'oidc-provider/lib/helpers/grant_common.js';
import * as grantHelpers from 'oidc-provider/lib/helpers/grants.js';
import initializeKeys from 'oidc-provider/lib/helpers/initialize_keystore.js';
import Router from 'oidc-provider/lib/helpers/router.js';
import { getDpopJwt } from 'oidc-provider/lib/helpers/validate_dpop.js';
import instance from 'oidc-provider/lib/helpers/weak_cache.js';
import clientAuthentication from 'oidc-provider/lib/shared/client_auth.js';
import { withParameters } from '../../http/server/body.ts';
import type { DetailTypes } from './authorization-details.ts';

type ContextMiddleware = (ctx: KoaContextWithOIDC, next: () => Promise<void>) => unknown;

type Register = (this: object, name: string, path: string, ...middleware: ContextMiddleware[]) => unknown;

/** The engine's router class. */
interface RouterClass {
  prototype: Record<(typeof METHODS)[number], Register>;
}

const METHODS = ['get', 'post', 'put', 'delete', 'options'] as const;

/**
 * Makes a provider that keeps the context as a plain member of the request. The engine defines a getter on each
 * request. V8 then allocates the request and all that it references among its old objects, which only a full
 * garbage collection frees.
 * @param inner the engine's router class, which is restored when the provider is made, and its storage of contexts.
 * @param make makes the provider.
 */
function withPlainContexts<P extends { OIDCContext: new (ctx: KoaContextWithOIDC) => object }>(
  inner: { router: RouterClass; storage: { run<T>(ctx: object, work: () => T): T } },
  make: () => P,
): P {
  let provider: P | undefined;
  const ensure: ContextMiddleware = (ctx, next) => {
    if (provider === undefined) throw new Error('a request came before the engine was made');
    Object.assign(ctx, { oidc: new provider.OIDCContext(ctx) });
    return inner.storage.run(ctx, next);
  };
  const { prototype } = inner.router;
  const before = METHODS.map((method) => ({ method, register: prototype[method] }));
  for (const { method, register } of before) {
    prototype[method] = function registered(this: object, name, path, first, ...others) {
      if (first?.name !== 'ensureOIDC') throw new Error('the engine makes its contexts in another way');
      return register.call(this, name, path, ensure, ...others);
    };
  }
  try {
    provider = make();
    return provider;
  } finally {
    for (const { method, register } of before) prototype[method] = register;
  }
}

/** The engine's interface for nonces. */
export interface Nonces {
  /** Returns the nonce to give to a client. */
  nextChallenge(): string;
  checkChallenge(nonce: string): boolean;
}

export const ENGINE_VERSION = '9.13.3';

type EngineMiddleware = (ctx: KoaContextWithOIDC, next: () => Promise<void>) => Promise<void> | void;

/**
 * The engine's client authentication (RFC 6749 §2.3, RFC 7523 §2.2) as middleware: expects
 * `ctx.oidc.params`, leaves `ctx.oidc.client`. Imported because the engine offers it only on its own endpoints, and a copy
 * would drift from it.
 */
export const engineClientAuthentication: readonly EngineMiddleware[] = clientAuthentication;

/**
 * Makes a provider whose requests have their context as a plain member ({@link withPlainContexts}). Imported because the
 * engine has no setting for it.
 */
export const makeProvider = (...args: ConstructorParameters<typeof Provider>): Provider =>
  withPlainContexts({ router: Router, storage: als }, () => new Provider(...args));

/** The object from which the engine issues tokens: its authorization code. */
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
 * Replaces the keys that the engine signs and verifies with. Imported because the engine reads keys only when it is
 * made, and a rotation must not need a restart.
 * @param jwks private keys, the one that signs first.
 */
export function replaceKeys(provider: Provider, jwks: JWKS): void {
  initializeKeys.call(provider, jwks);
}

/**
 * Makes the engine accept every enabled algorithm in client metadata, whether or not there is a key for it yet:
 * keys are made when an application asks for the algorithm. Imported because the engine otherwise accepts only the
 * algorithms of the keys that it was made with.
 */
export function acceptAllAlgorithms(provider: Provider): void {
  const { configuration } = instance(provider);
  configuration.idTokenSigningAlgValues = [...configuration.enabledJWA.idTokenSigningAlgValues];
  configuration.authorizationSigningAlgValues = [...configuration.enabledJWA.authorizationSigningAlgValues];
}

/**
 * Keeps the query of a callback to the letter when a response is added to it. Imported because the engine writes the whole
 * query anew, and takes no other handler for its own response modes.
 */
export function keepCallbackQueries(provider: Provider): void {
  const { responseModes } = instance(provider);
  responseModes.set('query', (ctx, redirectUri, payload) => {
    ctx.status = 303;
    ctx.redirect(withParameters(redirectUri, payload));
  });
  for (const name of ['jwt', 'query.jwt']) {
    const respond = responseModes.get(name);
    if (respond === undefined) continue;
    responseModes.set(name, async (ctx, redirectUri, payload) => {
      await respond(ctx, redirectUri, payload);
      const location = URL.parse(ctx.response.get('Location'));
      const response = location?.searchParams.get('response');
      // `jwt` is in the fragment for some response types.
      if (location?.hash === '' && response) ctx.redirect(withParameters(redirectUri, { response }));
    });
  }
}

/**
 * Wraps the handlers of the engine's own grants. Imported because the engine accepts further handlers but does not
 * give out its own.
 */
export function wrapGrants(
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
 * The engine's verification of DPoP proofs (RFC 9449 §4.3). Imported because the engine offers it only to its own
 * endpoints, and all endpoints have to accept the same proofs.
 */
export const engineDpop = grantHelpers as {
  validateDpop(
    provider: Provider,
    ctx: KoaContextWithOIDC,
    accessToken?: string,
  ): Promise<DpopProof | undefined>;
};

/**
 * Replaces the types of `authorization_details` that the engine accepts. Imported because the engine reads them
 * only when it is made, and an API may register one at any time.
 */
export function replaceDetailTypes(provider: Provider, types: DetailTypes): void {
  instance(provider).features.richAuthorizationRequests.types = types;
}

/**
 * Whether `jti` is that of the request's DPoP proof, which the engine has to have verified. Imported because the
 * engine does not expose the proof.
 */
export function isProofOf(provider: Provider, ctx: KoaContextWithOIDC, jti: string): boolean {
  return getDpopJwt(provider, ctx)?.payload.jti === jti;
}

/**
 * Replaces the engine's nonces for DPoP proofs (RFC 9449 §8). Imported because its own nonces end with the process.
 */
export function replaceNonces(provider: Provider, nonces: Nonces): void {
  instance(provider).DPoPNonces = nonces;
}

/**
 * Returns the names of the parameters that the token endpoint reads, by grant type; under `undefined` those of
 * every grant. Imported because the engine reads the parameters of all grants in every request.
 */
export function grantParameters(provider: Provider): Map<string | undefined, Set<string>> {
  return instance(provider).grantTypeParams;
}
