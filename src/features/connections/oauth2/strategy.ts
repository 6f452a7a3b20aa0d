// The strategy `oauth2`: custom social connections. A script of the operator reads the user's profile with the access token
// (docs/connections.md).
import type { Connection } from '../../../records/collections.ts';
import { STRATEGIES } from '../../../records/connections.ts';
import { missingOAuth2Options, type OAuth2Options, oauth2OptionsSchema } from '../../../records/oauth2.ts';
import { type RedirectStrategy, upstreamFault } from '../redirect.ts';
import { authorizationUrl } from './authorization.ts';
import { logoutUrl } from './logout.ts';
import { identityOf } from './profile.ts';
import { exchangeAnswer } from './response.ts';
import { grantOf, refreshToken } from './token.ts';

export const oauth2: RedirectStrategy = {
  name: 'oauth2',
  page: 'redirect',
  amr: [],
  record: STRATEGIES.oauth2,
  isSocial: true,
  idsWithin: 'connection',
  redirect: async (_deps, request) => ({ url: authorizationUrl(optionsOf(request.connection), request) }),
  identify: async (deps, response) => {
    const options = optionsOf(response.connection);
    const answer = await exchangeAnswer(deps, options, response);
    return {
      ...(await identityOf(deps, response, options, answer)),
      grant: grantOf(answer, deps.wallClock),
    };
  },
  logout: async (deps, logout) => logoutUrl(deps, optionsOf(logout.connection), logout),
  check: async (_deps, connection) => {
    optionsOf(connection);
  },
  refresh: async (deps, { connection, refreshToken: token }) =>
    grantOf(await refreshToken(deps, optionsOf(connection), token), deps.wallClock),
};

/** Returns the options of a connection. @throws AuthError by {@link upstreamFault} if a required one is missing. */
function optionsOf({ options }: Pick<Connection, 'options'>): OAuth2Options {
  const missing = missingOAuth2Options(options);
  if (missing.length > 0)
    throw upstreamFault('invalid_request', `The connection has no ${missing.join(', ')}.`);
  return oauth2OptionsSchema.parse(options);
}
