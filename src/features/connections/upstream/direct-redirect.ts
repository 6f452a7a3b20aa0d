// Redirects from the authorization endpoint directly to the provider of a request, without a login page
// (docs/wire/authorize.md).
// docs/decisions/connections.md#authorize-redirects-to-the-provider-itself
import type { DirectRedirect } from '../../../engine/authorize/authorize.ts';
import { AuthError } from '../../../http/errors.ts';
import type { Config } from '../../../tenant/config.ts';
import { directProvider } from '../resolve.ts';
import { type BeginDependencies, beginUpstream } from './begin.ts';

/** Returns the function that the authorization endpoint calls for a request that needs a login. */
export function directRedirect(deps: BeginDependencies & { config: Config }): DirectRedirect {
  return async (ctx, request) => {
    const upstream = await directProvider(deps.config, request);
    if (upstream === undefined) return undefined;
    try {
      const redirect = await beginUpstream(deps, ctx, request, upstream);
      return 'url' in redirect ? redirect.url : undefined;
    } catch (thrown) {
      // The login page tries again, and can end the request with an error.
      if (thrown instanceof AuthError) return undefined;
      throw thrown;
    }
  };
}
