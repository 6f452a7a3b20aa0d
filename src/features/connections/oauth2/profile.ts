// The user's profile: the connection's script reads it with the access token (docs/connections.md).
import type { OAuth2Options } from '../../../records/oauth2.ts';
import { isJsonObject } from '../../../runtime/json.ts';
import {
  type UpstreamDependencies,
  type UpstreamIdentity,
  type UpstreamResponse,
  upstreamFault,
} from '../redirect.ts';
import type { TokenAnswer } from './token.ts';

/**
 * Returns the user that the connection's script `fetchUserProfile` names.
 * @param answer the token endpoint's response.
 * @throws AuthError by {@link upstreamFault} when the script fails, or its result has no usable id.
 */
export async function identityOf(
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
