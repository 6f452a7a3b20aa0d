// The strategy `oauth2`: custom social connections (spec "Custom social connection"). Who the user is is said by a script
// of the operator's, which has the access token (spec "Fetch user profile script contract").
import type { Connection } from '../../records/collections.ts';
import { STRATEGIES } from '../../records/connections.ts';
import { type OAuth2Options, oauth2OptionsSchema } from '../../records/oauth2.ts';
import {
  type RedirectStrategy,
  refuseProviderError,
  type UpstreamResponse,
  upstreamFault,
} from '../redirect.ts';
import { authorizationUrl } from './authorization.ts';
import { logoutUrl } from './logout.ts';
import { identityOf } from './profile.ts';
import { exchangeCode, grantOf, refreshToken } from './token.ts';

export const oauth2: RedirectStrategy = {
  name: 'oauth2',
  page: 'redirect',
  amr: [],
  record: STRATEGIES.oauth2,
  isSocial: true,
  idsWithin: 'connection',
  redirect: async (_deps, request) => ({ url: authorizationUrl(optionsOf(request.connection), request) }),
  identify: async (deps, response) => {
    const { connection, parameters } = response;
    const options = optionsOf(connection);
    checkIssuer(options, parameters);
    refuseProviderError(parameters);
    const answer = await exchangeCode(deps, options, response);
    return {
      ...(await identityOf(deps, connection, options, answer)),
      grant: grantOf(answer, deps.wallClock),
    };
  },
  logout: (deps, logout) => logoutUrl(deps, optionsOf(logout.connection), logout),
  refresh: async (deps, { connection, refreshToken: token }) =>
    grantOf(await refreshToken(deps, optionsOf(connection), token), deps.wallClock),
};

function optionsOf({ options }: Connection): OAuth2Options {
  return oauth2OptionsSchema.parse(options);
}

/**
 * An answer that names its issuer must be of the provider that was asked (RFC 9207 §2.4). A connection that does not name
 * one is known by the origin of its authorization URL.
 * @throws AuthError by {@link upstreamFault}
 */
function checkIssuer(
  { issuer, authorizationURL }: OAuth2Options,
  { iss }: UpstreamResponse['parameters'],
): void {
  if (iss === undefined) return;
  const isSame =
    issuer === undefined ? URL.parse(iss)?.origin === new URL(authorizationURL).origin : iss === issuer;
  if (!isSame) throw upstreamFault('access_denied', 'The answer is of another identity provider.');
}
