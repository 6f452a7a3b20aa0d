// The back channel: exchanges codes and refresh tokens at the token endpoint, and reads the userinfo endpoint.
import { importJWK, type JWK } from 'jose';
import type { OpenIdOptions } from '../../../records/connections/openid.ts';
import type { Store } from '../../../store/contract.ts';
import {
  type UpstreamDependencies,
  type UpstreamRefresh,
  type UpstreamResponse,
  upstreamFault,
} from '../redirect.ts';
import { pkceMethod } from './authorization.ts';
import type { ClientCredential, CodeExchange, Tokens } from './client.ts';
import { endpointOf, type OpenIdConnection } from './connection.ts';
import { providerFault } from './faults.ts';
import type { Metadata } from './metadata.ts';

/** Returns a connection with a new DPoP key for the tokens of one exchange, if its options ask for DPoP (RFC 9449). */
export async function withProofKey<Options extends OpenIdOptions>(
  connection: OpenIdConnection<Options>,
): Promise<OpenIdConnection<Options>> {
  const { dpop_signing_alg: alg } = connection.options;
  if (alg === undefined) return connection;
  const { proofKey } = await import('./client.ts');
  return { ...connection, boundTo: await proofKey(alg) };
}

/** @throws AuthError by `upstreamFault`; its description never includes what was sent. */
export async function exchangeCode<Options extends OpenIdOptions>(
  deps: UpstreamDependencies,
  connection: OpenIdConnection<Options>,
  { connection: { id }, redirectUri, codeVerifier }: Omit<UpstreamResponse, 'parameters'>,
  code: string,
): Promise<Tokens> {
  const exchange: CodeExchange = {
    ...(await tokenRequest(deps, connection, id)),
    redirectUri,
    code,
    codeVerifier: pkceMethod(connection) === undefined ? undefined : codeVerifier,
  };
  const client = await import('./client.ts');
  return client.exchangeCode(deps.fetch, exchange).catch(providerFault('token endpoint'));
}

/** @throws AuthError as {@link exchangeCode}. */
export async function exchangeRefreshToken<Options extends OpenIdOptions>(
  deps: UpstreamDependencies,
  connection: OpenIdConnection<Options>,
  { connection: { id }, refreshToken }: Pick<UpstreamRefresh, 'connection' | 'refreshToken'>,
): Promise<Tokens> {
  const exchange = await tokenRequest(deps, connection, id);
  const client = await import('./client.ts');
  return client
    .exchangeRefreshToken(deps.fetch, exchange, refreshToken)
    .catch(providerFault('token endpoint'));
}

/** Returns the parameters of a request to the token endpoint: the provider, our client id and our credentials. */
async function tokenRequest<Options extends OpenIdOptions>(
  deps: UpstreamDependencies,
  connection: OpenIdConnection<Options>,
  connectionId: string,
) {
  const { clientId, metadata, boundTo } = connection;
  endpointOf(metadata, 'token_endpoint');
  const credential = await credentialOf(deps, connection, connectionId);
  return { metadata, clientId, credential, boundTo, now: deps.wallClock() };
}

/**
 * Returns the claims of the userinfo endpoint; empty if the provider has none.
 * @param subject the `sub` of the ID token.
 * @throws AuthError by `upstreamFault`, also if the response has another `sub`.
 */
export async function userInfoOf<Options extends OpenIdOptions>(
  deps: UpstreamDependencies,
  { clientId, metadata, boundTo }: OpenIdConnection<Options>,
  accessToken: string,
  subject: string,
): Promise<Record<string, unknown>> {
  if (metadata.userinfo_endpoint === undefined) return {};
  const credential = { method: 'none' } as const;
  const request = { metadata, clientId, credential, boundTo, now: deps.wallClock() };
  const client = await import('./client.ts');
  return client
    .userInfoOf(deps.fetch, request, accessToken, subject)
    .catch(providerFault('userinfo endpoint'));
}

async function credentialOf<Options extends OpenIdOptions>(
  deps: UpstreamDependencies,
  { preset, options, metadata }: OpenIdConnection<Options>,
  connectionId: string,
): Promise<ClientCredential> {
  if (preset.secretOf !== undefined) {
    return { method: 'client_secret_post', secret: await preset.secretOf(deps, options, metadata) };
  }
  const { token_endpoint_auth_method: method, client_secret: secret } = options;
  if (method === 'private_key_jwt') return keyCredential(deps, options, metadata, connectionId);
  return secret === '' ? { method: 'none' } : { method, secret };
}

/** Returns the connection's own key, for client authentication by a signed JWT (RFC 7523 §2.2). */
async function keyCredential(
  { store }: UpstreamDependencies,
  { token_endpoint_auth_signing_alg, token_endpoint_jwtca_aud_format }: OpenIdOptions,
  metadata: Metadata,
  connectionId: string,
): Promise<ClientCredential> {
  const signing = await signingKeyOf(store, connectionId);
  if (signing === undefined)
    throw upstreamFault('invalid_request', 'The connection has no key to sign with.');
  const { jwk, kid } = signing;
  const alg = token_endpoint_auth_signing_alg ?? String(jwk.alg);
  const key = await importJWK({ ...jwk, alg }, alg).catch(() => undefined);
  if (!(key instanceof CryptoKey)) {
    throw upstreamFault('invalid_request', "The connection's key is of another algorithm.");
  }
  const audience =
    token_endpoint_jwtca_aud_format === 'issuer' ? metadata.issuer : endpointOf(metadata, 'token_endpoint');
  return { method: 'private_key_jwt', key, kid, audience };
}

// The keys with which connections sign their requests.

/** Returns the current signing key of a connection; undefined if it has none. @param connectionId the connection's `id`. */
async function signingKeyOf(
  store: Pick<Store, 'collection'>,
  connectionId: string,
): Promise<{ kid: string; jwk: JWK } | undefined> {
  const keys = await store.collection('connectionKeys').findBy('connection', connectionId);
  const current = keys.find(({ state }) => state === 'current');
  return current && { kid: current.id, jwk: { ...current.jwk } };
}
