// A connection to an OpenID provider: its options, with the provider's metadata.
import type { Connection } from '../../../records/collections.ts';
import { strategyRecord } from '../../../records/connections/connections.ts';
import { ASYMMETRIC_ALGS, type OpenIdOptions } from '../../../records/connections/openid.ts';
import { isHttpsOrLoopback } from '../../../records/connections/upstream.ts';
import { type UpstreamDependencies, upstreamFault } from '../redirect.ts';
import type { ProofKey } from './client.ts';
import { providerFault } from './faults.ts';
import { type Claims, type ExpectedToken, verifyIdToken } from './id-token.ts';
import type { Metadata } from './metadata.ts';
import type { Preset } from './preset.ts';

/** Everything that a login with a connection needs. */
export interface OpenIdConnection<Options extends OpenIdOptions> {
  preset: Preset<Options>;
  options: Options;
  clientId: string;
  metadata: Metadata;
  /** Whether the browser brings the ID token (`response_type=id_token`), and not a code. */
  isFrontChannel: boolean;
  /** The key that the tokens of one exchange are bound to, if any. */
  boundTo?: ProofKey;
}

const DISCOVERY_SUFFIX = '/.well-known/openid-configuration';

/** Reads a connection's options and its provider's metadata. @throws AuthError by `upstreamFault` if a login is not possible. */
export async function openConnection<Options extends OpenIdOptions>(
  deps: Pick<UpstreamDependencies, 'openId' | 'samlMetadata'>,
  preset: Preset<Options>,
  { options: storedOptions }: Pick<Connection, 'options'>,
): Promise<OpenIdConnection<Options>> {
  const options = preset.parse(storedOptions);
  const { client_id: clientId, type = preset.type } = options;
  // Tenants exported from the hosted service have connections without a client_id, which used the service's own keys.
  const missing = strategyRecord(preset.name)?.missingOptions?.(storedOptions) ?? [];
  if (clientId === undefined || missing.length > 0)
    throw upstreamFault('invalid_request', `The connection has no ${missing.join(', ') || 'client_id'}.`);
  const found = await metadataOf(deps, preset, options);
  if (found.issuer === undefined) throw upstreamFault('invalid_request', 'The connection names no issuer.');
  const metadata = { ...found, issuer: found.issuer };
  return { preset, options, clientId, metadata, isFrontChannel: type === 'front_channel' };
}

/**
 * Returns a provider's metadata. Values in the options take precedence over the discovery document, which is only read if the
 * options are not complete; it takes precedence over the metadata that the options have from an earlier read.
 */
async function metadataOf<Options extends OpenIdOptions>(
  deps: Pick<UpstreamDependencies, 'openId' | 'samlMetadata'>,
  preset: Preset<Options>,
  options: Options,
): Promise<Partial<Metadata>> {
  const storedMetadata: Partial<Metadata> = options.oidc_metadata;
  const configured = configuredMetadata(options);
  const address =
    options.discovery_url ??
    configured.issuer ??
    (await preset.discovery(options, deps.samlMetadata)) ??
    storedMetadata.issuer;
  const found =
    address === undefined ||
    (options.discovery_url === undefined && isComplete({ ...storedMetadata, ...configured }))
      ? undefined
      : await deps.openId.metadata(address).catch(providerFault('discovery document'));
  if (found !== undefined && address !== undefined) checkDocument(preset, options, address, found);
  return { ...(found ?? storedMetadata), ...configured };
}

/** Returns the end_session_endpoint of a connection's provider, with our client id; undefined if it has none. */
export async function endSessionOf<Options extends OpenIdOptions>(
  deps: Pick<UpstreamDependencies, 'openId' | 'samlMetadata'>,
  preset: Preset<Options>,
  { options: storedOptions }: Pick<Connection, 'options'>,
): Promise<{ address: string; clientId: string | undefined } | undefined> {
  const options = preset.parse(storedOptions);
  const storedMetadata: Partial<Metadata> = options.oidc_metadata;
  // If the provider does not answer, the metadata that is stored in the options is used.
  const address: unknown =
    options.end_session_endpoint ??
    (await metadataOf(deps, preset, options).catch(() => storedMetadata)).end_session_endpoint;
  return typeof address === 'string' && isHttpsOrLoopback(address)
    ? { address, clientId: options.client_id }
    : undefined;
}

const ENDPOINTS = [
  'issuer',
  'authorization_endpoint',
  'token_endpoint',
  'userinfo_endpoint',
  'jwks_uri',
  'end_session_endpoint',
] as const;

function configuredMetadata(options: OpenIdOptions): Partial<Metadata> {
  const entries = ENDPOINTS.map((name) => [name, options[name]] as const);
  return Object.fromEntries(entries.filter(([, value]) => value !== undefined));
}

function isComplete({ issuer, authorization_endpoint, token_endpoint, jwks_uri }: Partial<Metadata>) {
  return [issuer, authorization_endpoint, token_endpoint, jwks_uri].every((one) => one !== undefined);
}

// docs/understand/decisions/connections.md#a-discovery-document-must-belong-to-the-address-that-it-was-read-from
/**
 * Rejects a discovery document of another issuer than the one whose address it was read from (OpenID Connect Discovery 1.0
 * §4.3). Otherwise anybody could publish a document that claims another provider's issuer with their own keys.
 */
function checkDocument<Options extends OpenIdOptions>(
  { isDocumentOf }: Preset<Options>,
  options: Options,
  address: string,
  { issuer }: Metadata,
): void {
  const expected = options.issuer ?? address.split(DISCOVERY_SUFFIX)[0] ?? '';
  const isSame = withoutSlash(issuer) === withoutSlash(expected);
  if (isSame || (options.issuer === undefined && isDocumentOf?.(issuer, address) === true)) return;
  throw upstreamFault('invalid_request', "The identity provider's discovery document is of another issuer.");
}

const withoutSlash = (text: string) => text.replace(/\/$/, '');

/** @throws AuthError by `upstreamFault` if the provider has none, or it is not an https URL. */
export function endpointOf(
  metadata: Metadata,
  name: 'authorization_endpoint' | 'token_endpoint' | 'jwks_uri',
): string {
  const address: unknown = metadata[name];
  if (typeof address === 'string' && isHttpsOrLoopback(address)) return address;
  throw upstreamFault('invalid_request', `The identity provider has no ${name} that can be used.`);
}

/**
 * Verifies an ID token by the rules of a connection.
 * @param expected `audiences` are accepted in addition to the connection's client id.
 * @returns its claims.
 * @throws AuthError by `upstreamFault` if it is not valid, or the connection does not admit its user.
 */
export async function claimsOf<Options extends OpenIdOptions>(
  deps: Pick<UpstreamDependencies, 'openId' | 'samlMetadata' | 'wallClock'>,
  { preset, options, clientId, metadata }: OpenIdConnection<Options>,
  token: string,
  expected: Pick<ExpectedToken, 'nonce' | 'accessToken' | 'acceptsAnyAzp'> & {
    audiences?: readonly string[];
  },
): Promise<Claims> {
  const { jwks_uri } = metadata;
  const { audiences = [], ...others } = expected;
  const claims = await verifyIdToken(token, {
    keys: jwks_uri === undefined ? undefined : deps.openId.keysOf(endpointOf(metadata, 'jwks_uri')),
    secret: options.client_secret,
    algorithms: options.id_token_signed_response_algs ?? ASYMMETRIC_ALGS,
    audiences: [clientId, ...audiences],
    isIssuer: (issuer, all) =>
      preset.isIssuer?.(issuer, all, options, metadata) ?? issuer === metadata.issuer,
    ...others,
    now: deps.wallClock(),
  });
  preset.admit?.(claims, options);
  return claims;
}
