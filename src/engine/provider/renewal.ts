// Keeps the engine's keys, grant types and discovery document up to date with the tenant's configuration.
import { createPublicKey, type JsonWebKey } from 'node:crypto';
import type Provider from 'oidc-provider';
import { ExternalSigningKey, errors, type JWKS, type KoaContextWithOIDC } from 'oidc-provider';
import type { Sign, Signing } from '../../capabilities/signing/signing.ts';
import { AuthError } from '../../http/errors.ts';
import type { SigningAlg } from '../../records/base/signing-algs.ts';
import { CREDENTIAL_ALGORITHMS } from '../../records/clients/client-credentials.ts';
import { type Config, derived } from '../../tenant/config.ts';
import type { SigningKey } from '../../tenant/tenant-snapshot.ts';
import { detailTypes } from '../base/authorization-details.ts';
import { replaceDetailTypes, replaceKeys } from '../base/internals.ts';
import { registerVendorGrant, type VendorGrant, type VendorGrantDependencies } from '../token/tokens.ts';

interface RenewalDependencies extends VendorGrantDependencies {
  grants: readonly VendorGrant[];
  signing: Pick<Signing, 'sign' | 'ensure'>;
  /** Our public origin. */
  baseUrl: string;
}

interface Renewal {
  /** Brings the engine up to date; called before each request that enters it. */
  renew(): Promise<void> | undefined;
  /** The current grant types; the same object while unchanged. */
  grantTypes(): ReadonlySet<string>;
}

const STANDARD_GRANTS = ['authorization_code', 'refresh_token', 'client_credentials'];

/** Returns the engine's keys, those that sign first. They contain no private members: the engine calls `sign`. */
export function engineKeys(sign: Sign, keys: readonly SigningKey[]): JWKS {
  const all = keys.map(({ id: kid, jwk }) => {
    const alg = jwk.alg as SigningAlg;
    const { kty, n, e, crv, x, y } = jwk;
    const publicKey = createPublicKey({ key: { kty, n, e, crv, x, y } as JsonWebKey, format: 'jwk' });
    return Object.assign(new ExternalSigningKey(), {
      kid,
      alg,
      keyObject: () => publicKey,
      sign: (data: Uint8Array) => sign(alg, kid, data).catch(rethrowBusy),
    });
  });
  return { keys: all } as JWKS;
}

/**
 * Rethrows a busy signing service as `temporarily_unavailable`, which applications also get at /authorize (RFC 6749
 * §4.1.2.1).
 */
function rethrowBusy(thrown: unknown): never {
  if (!(thrown instanceof AuthError) || thrown.status !== 503) throw thrown;
  throw new errors.TemporarilyUnavailable(thrown.error_description);
}

/**
 * Keeps the keys, our own grant types (their names contain `vendor_host`) and the discovery document up to date
 * with the tenant's configuration.
 */
export function renewal(provider: Provider, deps: RenewalDependencies): Renewal {
  const { config, signing } = deps;
  const keys = derived(config.signingKeys, (now) => replaceKeys(provider, engineKeys(signing.sign, now)));
  const details = derived(config.authorizationDetailsTypes, () =>
    replaceDetailTypes(provider, detailTypes(config)),
  );
  const vendorHost = () => config.settings().vendor_host;
  const grantTypes = derived(vendorHost, () => {
    for (const grant of deps.grants) registerVendorGrant(deps, provider, grant);
    return new Set([...STANDARD_GRANTS, ...deps.grants.map(({ grantType }) => grantType)]);
  });
  provider.use(async (ctx, next) => {
    await next();
    if ((ctx as Partial<KoaContextWithOIDC>).oidc?.route !== 'discovery') return;
    const known = grantTypes();
    const body = ctx.body as { grant_types_supported: string[] };
    // The engine never removes grant types itself.
    body.grant_types_supported = body.grant_types_supported.filter(
      (type) => known.has(type) || !type.includes('/oauth/grant-type/'),
    );
    Object.assign(body, logoutMetadata(deps.baseUrl, config));
  });
  const now = () => {
    keys();
    details();
    grantTypes();
  };
  const renew = () => {
    const newKeys = signing.ensure();
    if (newKeys !== undefined) return newKeys.then(now);
    now();
    return undefined;
  };
  return { renew, grantTypes };
}

/**
 * Returns the members of discovery about logout (RP-Initiated Logout 1.0 §2.1, Front-Channel §3, Back-Channel
 * §2.1). The endpoints are ours: the engine's logout always asks the user and knows only one list of redirect URIs.
 */
function logoutMetadata(baseUrl: string, config: Config): Record<string, unknown> {
  const settings = config.settings().tenant.oidc_logout;
  const isAnnounced = settings?.rp_logout_end_session_endpoint_discovery !== false;
  return {
    ...(isAnnounced ? { end_session_endpoint: `${baseUrl}/oidc/logout` } : {}),
    backchannel_logout_supported: true,
    backchannel_logout_session_supported: true,
    frontchannel_logout_supported: true,
    frontchannel_logout_session_supported: true,
  };
}

// Members of the server's metadata (RFC 8414 §2) for endpoints that the engine does not have.

export function discoveryMembers(baseUrl: string): Record<string, string | readonly string[] | boolean> {
  return {
    // RFC 8628 §4.
    device_authorization_endpoint: `${baseUrl}/oauth/device/code`,
    // OpenID Connect CIBA Core 1.0 §4.
    backchannel_authentication_endpoint: `${baseUrl}/bc-authorize`,
    backchannel_token_delivery_modes_supported: ['poll'],
    backchannel_authentication_request_signing_alg_values_supported: CREDENTIAL_ALGORITHMS,
    backchannel_user_code_parameter_supported: false,
    // draft-parecki-oauth-global-token-revocation §4; the last segment is the connection's name.
    global_token_revocation_endpoint: `${baseUrl}/oauth/global-token-revocation/connection/{connectionName}`,
    global_token_revocation_endpoint_auth_methods_supported: ['global-token-revocation+jwt'],
    // RFC 8414 §2.
    introspection_endpoint: `${baseUrl}/oauth/introspect`,
    introspection_endpoint_auth_methods_supported: [
      'client_secret_basic',
      'client_secret_post',
      'private_key_jwt',
      'tls_client_auth',
      'self_signed_tls_client_auth',
    ],
  };
}

/** Endpoints for users' browsers, which are never asked for certificates. */
const BROWSER_ENDPOINTS = new Set(['authorization_endpoint', 'end_session_endpoint']);

/**
 * Returns `mtls_endpoint_aliases` (RFC 8705 §5): the same endpoints at the origin where clients are asked for
 * certificates.
 * @param origin that origin.
 */
export function mtlsAliases(metadata: Readonly<Record<string, unknown>>, origin: string): object {
  const aliases = Object.entries(metadata).flatMap(([name, address]) => {
    if (!name.endsWith('_endpoint') || BROWSER_ENDPOINTS.has(name) || typeof address !== 'string') return [];
    return [[name, `${origin}${new URL(address).pathname}`]];
  });
  return { mtls_endpoint_aliases: Object.fromEntries(aliases) };
}
