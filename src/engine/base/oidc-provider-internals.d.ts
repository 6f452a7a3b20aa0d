// Types of the engine's inner modules that internals.ts imports; the package types only its main entry.
declare module 'oidc-provider/lib/helpers/grant_common.js' {
  import type Provider from 'oidc-provider';
  import type { Grant, KoaContextWithOIDC } from 'oidc-provider';
  export function issueTokens(
    provider: Provider,
    helpers: Record<string, unknown>,
    ctx: KoaContextWithOIDC,
    source: object,
    grant: Grant,
    options: { gty: string; entityLabel: string; dPoP?: object | undefined },
  ): Promise<void>;
}

declare module 'oidc-provider/lib/helpers/initialize_keystore.js' {
  import type Provider from 'oidc-provider';
  import type { JWKS } from 'oidc-provider';
  export default function initialize(this: Provider, jwks: JWKS): void;
}

declare module 'oidc-provider/lib/helpers/weak_cache.js' {
  import type Provider from 'oidc-provider';
  import type { KoaContextWithOIDC } from 'oidc-provider';

  type Algorithms = Record<'idTokenSigningAlgValues' | 'authorizationSigningAlgValues', string[]>;
  export default function instance(provider: Provider): {
    configuration: Algorithms & { enabledJWA: Algorithms };
    features: { richAuthorizationRequests: { types: object } };
    DPoPNonces: { nextChallenge(): string; checkChallenge(nonce: string): boolean };
    responseModes: Map<
      string,
      (ctx: KoaContextWithOIDC, redirectUri: string, payload: Record<string, string>) => Promise<void> | void
    >;
    grantTypeHandlers: Map<string, (ctx: KoaContextWithOIDC) => Promise<void>>;
    grantTypeParams: Map<string | undefined, Set<string>>;
  };
}

declare module 'oidc-provider/lib/helpers/validate_dpop.js' {
  import type Provider from 'oidc-provider';
  import type { KoaContextWithOIDC } from 'oidc-provider';
  /** The proof of a request, once it has been verified. */
  export function getDpopJwt(
    provider: Provider,
    ctx: KoaContextWithOIDC,
  ): { payload: { jti?: string } } | undefined;
}

declare module 'oidc-provider/lib/helpers/grants.js' {
  const helpers: Record<string, (...args: unknown[]) => unknown>;
  export = helpers;
}

declare module 'oidc-provider/lib/shared/client_auth.js' {
  import type { KoaContextWithOIDC } from 'oidc-provider';

  const stack: ((ctx: KoaContextWithOIDC, next: () => Promise<void>) => Promise<void> | void)[];
  export default stack;
}

declare module 'oidc-provider/lib/helpers/als.js' {
  import type { AsyncLocalStorage } from 'node:async_hooks';

  const storage: AsyncLocalStorage<object>;
  export default storage;
}

declare module 'oidc-provider/lib/helpers/router.js' {
  import type { KoaContextWithOIDC } from 'oidc-provider';

  type Middleware = (ctx: KoaContextWithOIDC, next: () => Promise<void>) => unknown;
  type Register = (this: object, name: string, path: string, ...middleware: Middleware[]) => unknown;
  const Router: { prototype: Record<'get' | 'post' | 'put' | 'delete' | 'options', Register> };
  export default Router;
}
