// The metadata of an OpenID provider (OpenID Connect Discovery 1.0 §3).

export interface Metadata {
  issuer: string;
  authorization_endpoint?: string | undefined;
  token_endpoint?: string | undefined;
  userinfo_endpoint?: string | undefined;
  jwks_uri?: string | undefined;
  end_session_endpoint?: string | undefined;
  /** The host of Microsoft Graph. */
  msgraph_host?: string | undefined;
  code_challenge_methods_supported?: readonly string[] | undefined;
  authorization_response_iss_parameter_supported?: boolean | undefined;
}

/** Bytes of a discovery document, or of another response of a provider. */
export const MAX_DOCUMENT_BYTES = 256 * 1024;
