// What an OpenID provider publishes of itself (OpenID Connect Discovery 1.0 §3).

/** A discovery document, as far as it is used. */
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

/** Bytes of a document, or of another answer of a provider. */
export const LARGEST_DOCUMENT = 256 * 1024;
