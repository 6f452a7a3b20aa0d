// The strategies of well-known providers: each is a preset (`presets.ts`) of the OAuth 2.0 implementation.

import { unverifiedClaims } from '../../../capabilities/signing/verify-jwt.ts';
import { STRATEGIES } from '../../../records/connections/connections.ts';
import { SOCIAL_STRATEGIES, type SocialStrategyName } from '../../../records/connections/social.ts';
import { isJsonObject } from '../../../runtime/json.ts';
import {
  authorizationUrl,
  endpointFault,
  exchangeAnswer,
  grantOf,
  refreshToken,
  refuseError,
  requestEndpoint,
  type TokenAnswer,
  USER_AGENT,
} from '../oauth2/oauth2-strategy.ts';
import {
  type RedirectStrategy,
  type UpstreamDependencies,
  type UpstreamIdentity,
  upstreamFault,
  withQuery,
} from '../redirect.ts';
import { type Json, type SocialPreset, valueAt } from './preset.ts';
import { refreshOptions, type SocialConnection, socialConnection } from './preset-options.ts';
import { presets } from './presets.ts';

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

// Reads the user of an access token from a well-known provider's profile endpoint.

/** Returns the user of a token response. @throws AuthError by {@link upstreamFault}. */
export async function socialIdentity(
  { fetch }: Pick<UpstreamDependencies, 'fetch'>,
  preset: SocialPreset,
  { clientId, clientSecret, scopes, userInfo }: SocialConnection,
  answer: TokenAnswer,
): Promise<Pick<UpstreamIdentity, 'id' | 'profile'>> {
  const { access_token: accessToken, id_token: idToken } = answer;
  const {
    method,
    query = {},
    headers = {},
  } = preset.profileRequest?.({ accessToken, clientId, clientSecret, scopes }) ?? {};
  const standardHeaders = {
    accept: 'application/json',
    'user-agent': USER_AGENT,
    authorization: `Bearer ${accessToken}`,
  };
  const get = (url: string) =>
    requestEndpoint({ fetch }, 'profile endpoint', withQuery(url, query), {
      method: method ?? 'GET',
      headers: { ...standardHeaders, ...headers },
    });
  const secrets = [clientSecret, accessToken];
  const further = Object.entries(preset.further ?? {}).map(async ([name, path]) => {
    const { response, text } = await get(appendPath(userInfo, path));
    // The scope was not granted, or a self-hosted server of this provider has no such endpoint.
    // docs/understand/decisions/connections.md#a-failed-request-for-further-parts-of-a-profile-ends-the-login
    if ([401, 403, 404].includes(response.status)) return [name, undefined] as const;
    return [name, answerOf(response, text, secrets)] as const;
  });
  const [{ response, text }, ...others] = await Promise.all([get(userInfo), ...further]);
  const user = answerOf(response, text, secrets);
  if (!isJsonObject(user)) {
    throw endpointFault('profile endpoint', 'sent no profile');
  }
  const { id, profile } = preset.read({
    user,
    further: Object.fromEntries(others),
    idToken: claimsOf(idToken),
  });
  return { id: idOf(id), profile };
}

/** Returns the claims of an ID token; empty if it cannot be decoded. */
function claimsOf(idToken: unknown): Json {
  try {
    return typeof idToken === 'string' ? unverifiedClaims(idToken) : {};
  } catch {
    return {};
  }
}

function appendPath(address: string, path: string): string {
  const url = new URL(address);
  url.pathname = `${url.pathname.replace(/\/$/, '')}${path}`;
  return url.href;
}

/** @throws AuthError if it is an error, whatever its status, or is not JSON. */
function answerOf(response: Response, text: string, secrets: readonly string[]): unknown {
  const answer = parseExact(text);
  refuseError('profile endpoint', valueAt(answer, 'error'), secrets);
  if (response.status !== 200)
    throw endpointFault('profile endpoint', `answered with status ${response.status}`);
  if (answer === undefined) throw endpointFault('profile endpoint', 'sent an answer that is no JSON');
  return answer;
}

/**
 * Parses JSON. Integers that a number cannot hold exactly become strings of their digits, because the ids of two users could
 * otherwise become the same number.
 * @returns undefined if the text is not JSON.
 */
function parseExact(text: string): unknown {
  const exact = (_name: string, value: unknown, { source }: { source?: string } = {}): unknown =>
    typeof value === 'number' && !Number.isSafeInteger(value) && source !== undefined && /^\d+$/.test(source)
      ? source
      : value;
  try {
    return JSON.parse(text, exact);
  } catch {
    return undefined;
  }
}

/** @throws AuthError by {@link upstreamFault} if it is missing, empty or not exact. */
function idOf(id: unknown): string {
  if (typeof id === 'string' && id.trim() !== '') return id;
  if (typeof id === 'number' && Number.isSafeInteger(id)) return String(id);
  throw upstreamFault('access_denied', 'The identity provider gave no user id that can be used.');
}
