// Members of the server's metadata (RFC 8414 §2) for endpoints that the engine does not have.

import { CREDENTIAL_ALGORITHMS } from '../../records/client-credentials.ts';

/** Returns these members. @param baseUrl our public origin. */
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
