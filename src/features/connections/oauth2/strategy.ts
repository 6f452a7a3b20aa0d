// The strategy `oauth2`: custom social connections. A script of the operator reads the user's profile with the access token
// (docs/connections.md).
import type { Connection } from '../../../records/collections.ts';
import { STRATEGIES } from '../../../records/connections.ts';
import { isHttpsOrLoopback } from '../../../records/logout.ts';
import { missingOAuth2Options, type OAuth2Options, oauth2OptionsSchema } from '../../../records/oauth2.ts';
import { isJsonObject } from '../../../runtime/json.ts';
import {
  type RedirectStrategy,
  type UpstreamDependencies,
  type UpstreamIdentity,
  type UpstreamLogout,
  type UpstreamResponse,
  upstreamFault,
  withQuery,
} from '../redirect.ts';
import { authorizationUrl } from './authorization.ts';
import { exchangeAnswer } from './response.ts';
import { grantOf, refreshToken, type TokenAnswer } from './token.ts';

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

// Logout at an OAuth 2.0 provider. There is no standard for it, so the connection's options have the URL.

/**
 * Returns the logout URL: the option `logoutUrl`, or else the result of the script `getLogoutUrl`.
 * @returns undefined if the connection has neither, and for a result that is not an https (or loopback) URL.
 */
async function logoutUrl(
  { runScript }: Pick<UpstreamDependencies, 'runScript'>,
  { logoutUrl: fixed, scripts }: OAuth2Options,
  { connection, returnTo }: UpstreamLogout,
): Promise<string | undefined> {
  if (fixed !== undefined && fixed !== '') return withQuery(fixed, { returnTo });
  const source = scripts.getLogoutUrl?.trim() ?? '';
  if (source === '') return undefined;
  const result = await runScript({
    connection,
    // A session has logins to several applications.
    clientId: undefined,
    name: 'getLogoutUrl',
    source,
    arguments: [{ returnTo }],
    secrets: [],
  });
  return typeof result === 'string' && isHttpsOrLoopback(result) ? result : undefined;
}

// The user's profile: the connection's script reads it with the access token (docs/connections.md).

/**
 * Returns the user that the connection's script `fetchUserProfile` names.
 * @param answer the token endpoint's response.
 * @throws AuthError by {@link upstreamFault} when the script fails, or its result has no usable id.
 */
async function identityOf(
  { baseUrl, runScript }: Pick<UpstreamDependencies, 'baseUrl' | 'runScript'>,
  { connection, clientId }: Pick<UpstreamResponse, 'connection' | 'clientId'>,
  { client_secret, scripts, fieldsMap }: OAuth2Options,
  answer: TokenAnswer,
): Promise<UpstreamIdentity> {
  const { access_token } = answer;
  const source = scripts.fetchUserProfile?.trim() ?? '';
  const tenant = new URL(baseUrl).hostname;
  const script = {
    connection,
    clientId,
    name: 'fetchUserProfile',
    source,
    // The provider's own members take precedence, because published scripts read them.
    arguments: [access_token, { tenant, tenantId: tenant, connection: connection.name, ...answer }],
    secrets: [client_secret, ...tokensIn(answer)],
  } as const;
  const result = source === '' ? {} : await runScript(script);
  if (!isJsonObject(result)) {
    throw upstreamFault('access_denied', 'The fetchUserProfile script gave no profile.');
  }
  const { user_metadata, app_metadata, ...rest } = result;
  const profile: Record<string, unknown> = { ...rest, ...mapFields(fieldsMap, rest) };
  // Scripts that return a provider's answer unchanged (GitHub's, for example) have `id` in place of `user_id`.
  const id = profile.user_id ?? profile.id;
  // A larger number was rounded when it was parsed, so that several users could have the same.
  if (typeof id === 'number' && !Number.isSafeInteger(id)) {
    throw upstreamFault('access_denied', 'The user_id of the profile is too large for a number.');
  }
  if (typeof id !== 'number' && (typeof id !== 'string' || id === '')) {
    throw upstreamFault('access_denied', 'The profile has no user_id.');
  }
  const metadata = {
    ...(isJsonObject(user_metadata) && { user_metadata }),
    ...(isJsonObject(app_metadata) && { app_metadata }),
  };
  return { id: String(id), profile, metadata };
}

/** Returns the values of a response that are long enough to be tokens. */
function tokensIn(answer: TokenAnswer): string[] {
  return Object.values(answer).filter((one): one is string => typeof one === 'string' && one.length > 15);
}

/** Returns the fields of `fieldsMap`: each has the value of the first of its names that the script's result has. */
function mapFields(
  fieldsMap: OAuth2Options['fieldsMap'],
  members: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(fieldsMap).flatMap(([field, names]) => {
      const found = [names].flat().find((name) => members[name] !== undefined && members[name] !== null);
      return found === undefined ? [] : [[field, members[found]]];
    }),
  );
}
