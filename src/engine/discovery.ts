// What the server's metadata say of the endpoints that are ours and not the engine's (RFC 8414 §2).

/** The members. @param baseUrl our public origin. */
export function discoveryMembers(baseUrl: string): Record<string, string | readonly string[] | boolean> {
  return {
    // RFC 8628 §4.
    device_authorization_endpoint: `${baseUrl}/oauth/device/code`,
    // OpenID Connect CIBA Core 1.0 §4.
    backchannel_authentication_endpoint: `${baseUrl}/bc-authorize`,
    backchannel_token_delivery_modes_supported: ['poll'],
    backchannel_user_code_parameter_supported: false,
    // RFC 8414 §2.
    introspection_endpoint: `${baseUrl}/oauth/introspect`,
    introspection_endpoint_auth_methods_supported: [
      'client_secret_basic',
      'client_secret_post',
      'private_key_jwt',
    ],
  };
}
