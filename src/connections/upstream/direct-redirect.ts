// From the authorization endpoint straight to the provider that a request is for (docs/wire/authorize.md).
import type { DirectRedirect } from '../../engine/authorize.ts';
import { AuthError } from '../../http/errors.ts';
import type { Config } from '../../tenant/config.ts';
import { directProvider } from '../request-connections.ts';
import { type BeginDependencies, beginUpstream } from './begin.ts';

/** What the authorization endpoint asks of a request that begins to wait for a login. */
export function directRedirect(deps: BeginDependencies & { config: Config }): DirectRedirect {
  return async (ctx, request) => {
    const upstream = await directProvider(deps.config, request);
    if (upstream === undefined) return undefined;
    try {
      const redirect = await beginUpstream(deps, ctx, request, upstream);
      return 'url' in redirect ? redirect.url : undefined;
    } catch (thrown) {
      // The request's own page asks once more, and has what it takes to end the request with an error.
      if (thrown instanceof AuthError) return undefined;
      throw thrown;
    }
  };
}
