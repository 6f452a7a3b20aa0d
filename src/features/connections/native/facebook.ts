// Native login with a session info access token of Facebook's SDK. It identifies the user and grants no access, so Facebook is
// asked which user and which app it was issued for.
import { isJsonObject, jsonOf } from '../../../runtime/json.ts';
import { providerFault } from '../oidc/faults.ts';
import { type UpstreamDependencies, type UpstreamIdentity, upstreamFault } from '../redirect.ts';
import { socialConnection } from '../social/options.ts';
import { presets } from '../social/presets.ts';
import type { NativeToken } from './token.ts';

/** Characters of the profile that the app sends, as JSON. */
const MAX_PROFILE_BYTES = 8_192;
/** Characters of one claim in it. */
const MAX_TEXT_LENGTH = 500;
const CLAIM_NAMES = ['name', 'given_name', 'family_name', 'nickname', 'picture', 'email'];

/** Returns the user of a token. @throws AuthError by `upstreamFault` for one that is not valid, or was issued for another app. */
export async function facebookIdentity(
  deps: UpstreamDependencies,
  { connection, token, userProfile }: NativeToken,
): Promise<UpstreamIdentity> {
  const { clientId, clientSecret, userInfo } = socialConnection(presets.facebook, connection);
  const url = new URL('/debug_token', userInfo);
  url.searchParams.set('input_token', token);
  const answer = await deps
    .fetch(url, { headers: { authorization: `Bearer ${clientId}|${clientSecret}` }, redirect: 'manual' })
    .then(async (response) => (await response.json()) as { data?: Record<string, unknown> } | null)
    .catch(providerFault('debug_token endpoint'));
  const { is_valid, app_id, user_id } = answer?.data ?? {};
  if (is_valid !== true) throw upstreamFault('access_denied', 'The token is not good.');
  if (String(app_id) !== clientId) throw upstreamFault('access_denied', 'The token is of another app.');
  if (typeof user_id !== 'string' || user_id === '')
    throw upstreamFault('access_denied', 'The token names nobody.');
  return { id: user_id, profile: profileOf(userProfile) };
}

/**
 * Reads the profile that the app sends. It is unverified, so the e-mail address counts as unverified, and only name claims,
 * the picture and the address are read.
 */
function profileOf(text: string | undefined): Record<string, unknown> {
  if (text === undefined || text.length > MAX_PROFILE_BYTES) return {};
  const parsed = jsonOf(text);
  const claims = isJsonObject(parsed) ? parsed : {};
  const texts = CLAIM_NAMES.flatMap((name) => {
    const value = Object.hasOwn(claims, name) ? claims[name] : undefined;
    return typeof value === 'string' && value.length <= MAX_TEXT_LENGTH ? [[name, value] as const] : [];
  });
  return { ...Object.fromEntries(texts), email_verified: false };
}
