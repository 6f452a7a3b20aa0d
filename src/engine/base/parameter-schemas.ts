// Schemas of the engine's requests, for the OpenAPI document only: the engine itself checks requests.
import { z } from 'zod';
import { CLIENT_FIELDS, optional, required } from '../../http/parameter-schemas.ts';

/** Parameters of /authorize (OpenID Connect Core §3.1.2.1); unknown ones are kept for upstream providers. */
export const authorizationParameters = z.looseObject({
  client_id: required('The application.'),
  request_uri: optional(
    'The value from `/oauth/par` (RFC 9126); all other parameters except `client_id` are ignored.',
  ),
  response_type: required('`code`, `token`, `id_token`, `id_token token`, or a hybrid of them.'),
  redirect_uri: required('One of the callbacks of the application.'),
  scope: optional('`openid profile email` by default.'),
  state: optional('Returned unchanged.'),
  nonce: optional('Returned in the ID token.'),
  audience: optional(
    'The identifier of the API that the access token is for. `resource` (RFC 8707) has the same meaning.',
  ),
  response_mode: optional(
    '`query`, `fragment`, `form_post` or `web_message`; `jwt`, or one of the first three with `.jwt`, for a signed response.',
  ),
  code_challenge: optional('PKCE (RFC 7636); required from public applications.'),
  code_challenge_method: optional('`S256`'),
  dpop_jkt: optional('The thumbprint of the DPoP key that the code is bound to (RFC 9449 §10).'),
  connection: optional('The connection to log in with.'),
  organization: optional('The organization, by id or name.'),
  invitation: optional('The ticket of an invitation.'),
  prompt: optional('`none`, `login`, `consent`, `select_account`.'),
  screen_hint: optional('`signup` shows the sign-up page first.'),
  login_hint: optional('Fills in the e-mail address or username.'),
  max_age: optional('The maximum number of seconds since the last login.'),
  acr_values: optional(
    '`http://schemas.openid.net/pape/policies/2007/06/multi-factor` requires a second factor.',
  ),
  id_token_hint: optional('An ID token of the expected user.'),
  ui_locales: optional('Languages of the pages, preferred first.'),
  claims: optional('Requested claims, as JSON (OpenID Connect Core §5.5).'),
  authorization_details: optional('JSON (RFC 9396), of types that the API has registered.'),
  display: optional('`page`, `popup`, `touch` or `wap`; has no effect.'),
  request: optional('The parameters as a signed JWT (OpenID Connect Core §6.1).'),
  login_ticket: optional(
    'A ticket from `/co/authenticate` or a login link, for a login that has already been done.',
  ),
  session_transfer_token: optional(
    'A session transfer token: the session that an application transfers to the browser.',
  ),
  connection_scope: optional('Scopes that are requested from the upstream provider.'),
});

/** Body of /oauth/par (RFC 9126 §2.1): the parameters of /authorize and the client's authentication. */
export const pushedBody = authorizationParameters.omit({ client_id: true }).extend({
  ...CLIENT_FIELDS,
  // Optional here, because they may be in the request object instead.
  response_type: optional('As at `/authorize`.'),
  redirect_uri: optional('As at `/authorize`.'),
});

/** Response of /oauth/par (RFC 9126 §2.2). */
export const pushedAnswer = z.object({
  request_uri: z.string().describe('For one request to `/authorize`, with only `client_id` beside it.'),
  expires_in: z.number().int().describe('Seconds until the browser must have opened `/authorize`.'),
});

const scopeAndAudience = {
  scope: optional('The requested scopes, separated by spaces.'),
  audience: optional(
    'The identifier of the API that the access token is for. `resource` (RFC 8707) has the same meaning.',
  ),
};

const organization = optional('The organization that the tokens are for, by id or name.');

/** Parameters of the engine's own grants, by `grant_type`. */
export const STANDARD_GRANTS = {
  authorization_code: z.object({
    code: required('The code from the callback.'),
    redirect_uri: optional('The same value as at `/authorize`.'),
    code_verifier: optional('The code verifier of PKCE (RFC 7636), if the request had a challenge.'),
  }),
  refresh_token: z.object({
    refresh_token: required('The refresh token that came with an access token.'),
    scope: optional('Fewer scopes than were granted.'),
  }),
  client_credentials: z.object({ ...scopeAndAudience, organization }),
} as const;

/**
 * Returns the schema of a token request.
 * @param grantType the complete `grant_type`.
 * @param parameters those of the grant.
 * @param isStandard whether it is one of {@link STANDARD_GRANTS}, whose parameters are complete.
 */
export function tokenBody(grantType: string, parameters: z.ZodObject, isStandard: boolean): z.ZodObject {
  return z.object({
    grant_type: z.literal(grantType),
    ...parameters.shape,
    ...(isStandard ? {} : { ...scopeAndAudience, organization }),
    ...CLIENT_FIELDS,
  });
}

/** Response of the token endpoint (RFC 6749 §5.1). */
export const tokenAnswer = z.object({
  access_token: z.string(),
  token_type: z.enum(['Bearer', 'DPoP']),
  expires_in: z.number().int().describe('Seconds.'),
  scope: z.string().optional(),
  id_token: optional('With the scope `openid`.'),
  refresh_token: optional('With the scope `offline_access`.'),
  recovery_code: optional('A new recovery code, if one was used.'),
});

/** Body of /oauth/revoke (RFC 7009 §2.1). */
export const revocationBody = z.object({
  ...CLIENT_FIELDS,
  token: required('A refresh token.'),
  token_type_hint: optional('`refresh_token`'),
});

/** Body of /oauth/introspect (RFC 7662 §2.1). */
export const introspectionBody = z.object({
  ...CLIENT_FIELDS,
  token: required('An access token that the API received.'),
  token_type_hint: optional('`access_token`'),
});

/** Response of /oauth/introspect (RFC 7662 §2.2): the claims of the token, when it is active. */
export const introspectionAnswer = z.looseObject({ active: z.boolean() });

/** Response of /userinfo: the claims of the token's scopes (OpenID Connect Core §5.4). */
export const userinfoAnswer = z.looseObject({ sub: z.string() });

/** The discovery document (RFC 8414 §2; OpenID Connect Discovery 1.0 §3); it has further members. */
export const discoveryAnswer = z.looseObject({
  issuer: z.string(),
  authorization_endpoint: z.url(),
  token_endpoint: z.url(),
  userinfo_endpoint: z.url(),
  jwks_uri: z.url(),
});

/** The key set (RFC 7517 §5). */
export const keySetAnswer = z.object({ keys: z.array(z.looseObject({ kty: z.string(), kid: z.string() })) });
