// The user of an access token, as a provider's preset reads them.
import { decodeJwt } from 'jose';
import { endpointFault, refuseError, requestEndpoint, USER_AGENT } from '../oauth2/provider-request.ts';
import type { TokenAnswer } from '../oauth2/token.ts';
import { type UpstreamDependencies, type UpstreamIdentity, upstreamFault, withQuery } from '../redirect.ts';
import type { SocialConnection } from './options.ts';
import { at, type Json, type SocialPreset } from './preset.ts';

/** Whom a token endpoint's answer is of. @throws AuthError by {@link upstreamFault}. */
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
  } = preset.ask?.({ accessToken, clientId, clientSecret, scopes }) ?? {};
  const own = {
    accept: 'application/json',
    'user-agent': USER_AGENT,
    authorization: `Bearer ${accessToken}`,
  };
  const ask = (url: string) =>
    requestEndpoint({ fetch }, 'profile endpoint', withQuery(url, query), {
      method: method ?? 'GET',
      headers: { ...own, ...headers },
    });
  const secrets = [clientSecret, accessToken];
  const further = Object.entries(preset.further ?? {}).map(async ([name, path]) => {
    const { response, text } = await ask(below(userInfo, path));
    // The scope was not granted, or the provider's own server has no such address.
    if ([401, 403, 404].includes(response.status)) return [name, undefined] as const;
    return [name, answerOf(response, text, secrets)] as const;
  });
  const [{ response, text }, ...others] = await Promise.all([ask(userInfo), ...further]);
  const user = answerOf(response, text, secrets);
  if (typeof user !== 'object' || user === null || Array.isArray(user)) {
    throw endpointFault('profile endpoint', 'sent no profile');
  }
  const { id, profile } = preset.read({
    user: user as Json,
    further: Object.fromEntries(others),
    idToken: claimsOf(idToken),
  });
  return { id: idOf(id), profile };
}

/** The claims of an ID token; nothing of one that cannot be read. */
function claimsOf(idToken: unknown): Json {
  try {
    return typeof idToken === 'string' ? decodeJwt(idToken) : {};
  } catch {
    return {};
  }
}

/** An address whose path goes on. */
function below(address: string, path: string): string {
  const url = new URL(address);
  url.pathname = `${url.pathname.replace(/\/$/, '')}${path}`;
  return url.href;
}

/** @throws AuthError for an error, with whatever status, and for what is no JSON. */
function answerOf(response: Response, text: string, secrets: readonly string[]): unknown {
  const answer = parseExact(text);
  refuseError('profile endpoint', at(answer, 'error'), secrets);
  if (response.status !== 200)
    throw endpointFault('profile endpoint', `answered with status ${response.status}`);
  if (answer === undefined) throw endpointFault('profile endpoint', 'sent an answer that is no JSON');
  return answer;
}

/**
 * JSON, with integers above 2^53 as texts of their digits: ids of two users would otherwise become one number.
 * @returns undefined for what is no JSON.
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

/** @throws AuthError for what nobody can be known by. */
function idOf(id: unknown): string {
  if (typeof id === 'string' && id.trim() !== '') return id;
  if (typeof id === 'number' && Number.isSafeInteger(id)) return String(id);
  throw upstreamFault('access_denied', 'The identity provider gave no user id that can be used.');
}
