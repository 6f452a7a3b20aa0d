// Requests to OpenID providers, by `openid-client`. This module is only loaded with the first request, to keep the start fast.

import type { CryptoKey } from 'jose';
import {
  allowInsecureRequests,
  authorizationCodeGrant,
  type ClientAuth,
  ClientSecretBasic,
  ClientSecretPost,
  Configuration,
  type CryptoKeyPair,
  clockSkew,
  customFetch,
  discovery,
  fetchUserInfo,
  genericGrantRequest,
  getDPoPHandle,
  modifyAssertion,
  None,
  PrivateKeyJwt,
  randomDPoPKeyPair,
  refreshTokenGrant,
} from 'openid-client';
import type { Outbound } from '../../../http/outbound/outbound.ts';
import { MAX_DOCUMENT_BYTES, type Metadata } from './metadata.ts';

/** The client authentication at a token endpoint (OpenID Connect Core 1.0 §9). */
export type ClientCredential =
  | { method: 'none' }
  | { method: 'client_secret_post' | 'client_secret_basic'; secret: string }
  | { method: 'private_key_jwt'; key: CryptoKey; kid: string; audience: string };

/** A DPoP key (RFC 9449). */
export type ProofKey = CryptoKeyPair;

export interface CodeExchange {
  metadata: Metadata;
  clientId: string;
  credential: ClientCredential;
  redirectUri: string;
  code: string;
  /** Undefined without PKCE. */
  codeVerifier: string | undefined;
  /** The key that the tokens are to be bound to (RFC 9449), if any. */
  boundTo?: ProofKey | undefined;
  /** The current time, epoch milliseconds. */
  now: number;
}

/** A token response. The ID token is not verified yet. */
export interface Tokens {
  access_token: string;
  id_token?: string;
  [member: string]: unknown;
}

/** Reads a discovery document. @throws errors of openid-client, also for a document of another issuer. */
export async function discover(fetch: Outbound['fetch'], address: string): Promise<Metadata> {
  const configuration = await discovery(new URL(address), 'unused', undefined, None(), {
    [customFetch]: limitedFetch(fetch),
    execute: [allowInsecureRequests],
  });
  return configuration.serverMetadata() as Metadata;
}

/** @throws errors of openid-client, with an OutboundError as the cause if the request failed. */
export async function exchangeCode(fetch: Outbound['fetch'], exchange: CodeExchange): Promise<Tokens> {
  const { redirectUri, code, codeVerifier } = exchange;
  const config = configurationOf(exchange);
  const removedIdToken = removeIdToken(config, fetch);
  const callbackUrl = new URL(redirectUri);
  callbackUrl.searchParams.set('code', code);
  const checks = codeVerifier === undefined ? {} : { pkceCodeVerifier: codeVerifier };
  const tokens = await authorizationCodeGrant(
    config,
    callbackUrl,
    checks,
    undefined,
    proofOf(config, exchange),
  );
  return { ...tokens, ...removedIdToken() };
}

/**
 * Exchanges an authorization code that an app got from a provider's SDK, without a redirect URI.
 * @throws errors of openid-client, with an OutboundError as the cause if the request failed.
 */
export async function exchangeNativeCode(
  fetch: Outbound['fetch'],
  exchange: Omit<CodeExchange, 'codeVerifier' | 'redirectUri'>,
): Promise<Tokens> {
  const config = configurationOf(exchange);
  const removedIdToken = removeIdToken(config, fetch);
  const tokens = await genericGrantRequest(config, 'authorization_code', { code: exchange.code });
  return { ...tokens, ...removedIdToken() };
}

/**
 * Exchanges a refresh token (OpenID Connect Core 1.0 §12.1).
 * @throws errors of openid-client, with an OutboundError as the cause if the request failed.
 */
export async function exchangeRefreshToken(
  fetch: Outbound['fetch'],
  exchange: Omit<CodeExchange, 'code' | 'codeVerifier' | 'redirectUri'>,
  refreshToken: string,
): Promise<Tokens> {
  const config = configurationOf(exchange);
  const removedIdToken = removeIdToken(config, fetch);
  const tokens = await refreshTokenGrant(config, refreshToken, undefined, proofOf(config, exchange));
  return { ...tokens, ...removedIdToken() };
}

/**
 * Returns the claims of the userinfo endpoint (OpenID Connect Core 1.0 §5.3).
 * @param subject the `sub` of the ID token.
 * @throws errors of openid-client, also if the response has another `sub`.
 */
export async function userInfoOf(
  fetch: Outbound['fetch'],
  exchange: Omit<CodeExchange, 'code' | 'codeVerifier' | 'redirectUri'>,
  accessToken: string,
  subject: string,
): Promise<Record<string, unknown>> {
  const config = configurationOf(exchange);
  config[customFetch] = limitedFetch(fetch);
  return fetchUserInfo(config, accessToken, subject, proofOf(config, exchange));
}

/** Creates a DPoP key, for the tokens of one login. @param alg `ES256`, `ES384`, `ES512` or `Ed25519`. */
export async function proofKey(alg: string): Promise<ProofKey> {
  return randomDPoPKeyPair(alg);
}

function proofOf(config: Configuration, { boundTo }: Pick<CodeExchange, 'boundTo'>) {
  return boundTo === undefined ? {} : { DPoP: getDPoPHandle(config, boundTo) };
}

function configurationOf({
  metadata,
  clientId,
  credential,
  now,
}: Pick<CodeExchange, 'metadata' | 'clientId' | 'credential' | 'now'>): Configuration {
  const { issuer, token_endpoint, userinfo_endpoint } = metadata;
  const server = {
    issuer,
    ...(token_endpoint !== undefined && { token_endpoint }),
    ...(userinfo_endpoint !== undefined && { userinfo_endpoint }),
  };
  const skew = Math.round((now - Date.now()) / 1000);
  const config = new Configuration(server, clientId, { [clockSkew]: skew }, clientAuthentication(credential));
  // The rules for outbound requests decide whether an address may be used without TLS, not the library.
  allowInsecureRequests(config);
  return config;
}

function clientAuthentication(credential: ClientCredential): ClientAuth {
  switch (credential.method) {
    case 'none':
      return None();
    case 'client_secret_post':
      return ClientSecretPost(credential.secret);
    case 'client_secret_basic':
      return ClientSecretBasic(credential.secret);
    case 'private_key_jwt':
      return privateKeyJwt(credential);
  }
}

function privateKeyJwt({
  key,
  kid,
  audience,
}: Extract<ClientCredential, { method: 'private_key_jwt' }>): ClientAuth {
  return PrivateKeyJwt(
    { key, kid },
    {
      [modifyAssertion]: (_header, payload) => {
        payload.aud = audience;
      },
    },
  );
}

/** Returns the client for outbound requests in the form that openid-client takes, with a limit on the size of responses. */
function limitedFetch(fetch: Outbound['fetch']) {
  return (url: string, init: object) => fetch(url, { ...init, maxBytes: MAX_DOCUMENT_BYTES });
}

/**
 * Removes the ID token from token responses before the library sees them. All ID tokens are verified in id-token.ts, with the
 * tenant's clock and the connection's rules. The library supports neither issuer templates nor signatures by a client secret.
 * @returns a function that returns the removed ID token, as the member `id_token`.
 */
function removeIdToken(config: Configuration, fetch: Outbound['fetch']): () => { id_token?: string } {
  let idToken: unknown;
  config[customFetch] = async (url, init) => {
    const response = await limitedFetch(fetch)(url, init);
    const { removed, rest } = await withoutIdToken(response);
    idToken = removed;
    return rest;
  };
  return () => (typeof idToken === 'string' ? { id_token: idToken } : {});
}

async function withoutIdToken(response: Response): Promise<{ removed?: unknown; rest: Response }> {
  if (response.status !== 200) return { rest: response };
  const answer = (await response
    .clone()
    .json()
    .catch(() => undefined)) as Record<string, unknown> | undefined;
  if (typeof answer !== 'object' || answer === null) return { rest: response };
  const { id_token: removed, ...others } = answer;
  const rest = new Response(JSON.stringify(others), { status: 200, headers: response.headers });
  return { removed, rest };
}
