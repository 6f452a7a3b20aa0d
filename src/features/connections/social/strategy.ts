// The strategies of well-known providers: each is a preset (`presets.ts`) of the OAuth 2.0 implementation.
import { STRATEGIES } from '../../../records/connections.ts';
import { SOCIAL_STRATEGIES, type SocialStrategyName } from '../../../records/social.ts';
import { authorizationUrl } from '../oauth2/authorization.ts';
import { exchangeAnswer } from '../oauth2/response.ts';
import { grantOf, refreshToken } from '../oauth2/token.ts';
import type { RedirectStrategy } from '../redirect.ts';
import { refreshOptions, socialConnection } from './options.ts';
import { presets } from './presets.ts';
import { socialIdentity } from './userinfo.ts';

/** A strategy for each well-known provider. */
export const socialStrategies: readonly RedirectStrategy[] = SOCIAL_STRATEGIES.map(social);

function social(name: SocialStrategyName): RedirectStrategy {
  const preset = presets[name];
  return {
    name,
    page: 'redirect',
    amr: [],
    record: STRATEGIES[name],
    isSocial: true,
    label: preset.displayName,
    idsWithin: 'strategy',
    redirect: async (_deps, request) => ({
      url: authorizationUrl(socialConnection(preset, request.connection).oauth2, request),
    }),
    identify: async (deps, response) => {
      const connection = socialConnection(preset, response.connection);
      const answer = await exchangeAnswer(deps, connection.oauth2, response);
      return {
        ...(await socialIdentity(deps, preset, connection, answer)),
        grant: grantOf(answer, deps.wallClock),
      };
    },
    check: async (_deps, connection) => {
      socialConnection(preset, connection);
    },
    // None of these providers lets a client end the user's session.
    logout: async () => undefined,
    refresh: async (deps, { connection, refreshToken: token }) => {
      const options = refreshOptions(preset, socialConnection(preset, connection));
      return grantOf(await refreshToken(deps, options, token), deps.wallClock);
    },
  };
}
