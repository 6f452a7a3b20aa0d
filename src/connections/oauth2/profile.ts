// Who the user is: what the connection's script makes of the access token (docs/connections.md).
import type { Connection } from '../../records/collections.ts';
import type { OAuth2Options } from '../../records/oauth2.ts';
import { type UpstreamDependencies, type UpstreamIdentity, upstreamFault } from '../redirect.ts';
import type { TokenAnswer } from './token.ts';

/**
 * The user as the script has them.
 * @throws AuthError by {@link upstreamFault} when it fails, or names no user.
 */
export async function identityOf(
  { baseUrl, runScript }: Pick<UpstreamDependencies, 'baseUrl' | 'runScript'>,
  connection: Connection,
  { client_secret, scripts, fieldsMap }: OAuth2Options,
  answer: TokenAnswer,
): Promise<UpstreamIdentity> {
  const { access_token } = answer;
  const source = scripts.fetchUserProfile?.trim() ?? '';
  const tenant = new URL(baseUrl).hostname;
  const script = {
    connection,
    name: 'fetchUserProfile',
    source,
    // What the provider says comes first: scripts read members of its own.
    arguments: [access_token, { tenant, tenantId: tenant, connection: connection.name, ...answer }],
    secrets: [client_secret, ...tokensIn(answer)],
  } as const;
  const result = source === '' ? {} : await runScript(script);
  if (typeof result !== 'object' || result === null || Array.isArray(result)) {
    throw upstreamFault('access_denied', 'The fetchUserProfile script gave no profile.');
  }
  const { user_metadata, app_metadata, ...rest } = result as Record<string, unknown>;
  const profile: Record<string, unknown> = { ...rest, ...mapped(fieldsMap, rest) };
  // Scripts that hand on what GitHub and others answer have an `id` alone.
  const id = profile.user_id ?? profile.id;
  // A larger number was rounded when it was read: several users would share it.
  if (typeof id === 'number' && !Number.isSafeInteger(id)) {
    throw upstreamFault('access_denied', 'The user_id of the profile is too large for a number.');
  }
  if (typeof id !== 'number' && (typeof id !== 'string' || id === '')) {
    throw upstreamFault('access_denied', 'The profile has no user_id.');
  }
  const metadata = {
    ...(isObject(user_metadata) && { user_metadata }),
    ...(isObject(app_metadata) && { app_metadata }),
  };
  return { id: String(id), profile, metadata };
}

/** What of an answer is long enough to be a token. */
function tokensIn(answer: TokenAnswer): string[] {
  return Object.values(answer).filter((one): one is string => typeof one === 'string' && one.length > 15);
}

/** `fieldsMap`: a field of the profile by the name, or the first there is of several names, that the script gave it. */
function mapped(
  fieldsMap: OAuth2Options['fieldsMap'],
  given: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(fieldsMap).flatMap(([field, names]) => {
      const found = [names].flat().find((name) => given[name] !== undefined && given[name] !== null);
      return found === undefined ? [] : [[field, given[found]]];
    }),
  );
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
