// How the engine gives each of its requests a context (`ctx.oidc`).
import type { KoaContextWithOIDC } from 'oidc-provider';

type EngineMiddleware = (ctx: KoaContextWithOIDC, next: () => Promise<void>) => unknown;

type Register = (this: object, name: string, path: string, ...middleware: EngineMiddleware[]) => unknown;

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
export function withPlainContexts<P extends { OIDCContext: new (ctx: KoaContextWithOIDC) => object }>(
  inner: { router: RouterClass; storage: { run<T>(ctx: object, work: () => T): T } },
  make: () => P,
): P {
  let provider: P | undefined;
  const ensure: EngineMiddleware = (ctx, next) => {
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
