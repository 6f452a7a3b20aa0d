// The bodies that create and change clients.

import { z } from 'zod';
import { isCallback } from '../../../../http/schemes.ts';
import { TOKEN_ALGS } from '../../../../records/base/signing-algs.ts';
import { hasMark } from '../../../../records/clients/allowed-urls.ts';
import { CONTENT_ENCRYPTION, ENCRYPTION_ALGS } from '../../../../records/clients/encryption.ts';
import { REDIRECTION_POLICIES, SECURITY_MODES } from '../../../../records/clients/third-parties.ts';
import { urlList } from '../../url-lists.ts';

const text = (longest = 1024) => z.string().max(longest);
const texts = z.array(z.string().max(2048)).max(1000);
/** The engine rejects a client with an invalid redirect URI, so that nobody could log in to it. */
const callbacks = urlList('callback-url', {
  entry: z
    .string()
    .max(2048)
    .refine(isCallback, 'must be an absolute URI without a fragment, such as https://app.example/callback'),
});
/** Where the browser is sent is one address. */
const loginAddress = text().superRefine((address, { addIssue }) => {
  const message = `Object didn't pass validation for format absolute-uri-or-empty: ${address}`;
  if (hasMark(address)) addIssue({ code: 'custom', message, input: address });
});
const object = z.record(z.string(), z.unknown());
const nullable = <S extends z.ZodType>(schema: S) => schema.nullable();

export const clientMetadata = z
  .record(text(255), text(255))
  .refine((all) => Object.keys(all).length <= 10, 'At most 10 keys');

/**
 * The members that a caller can set. Those with a meaning here are validated by the tenant file's schema as well.
 */
const members = {
  name: text(255)
    .min(1)
    .regex(/^[^<>]*$/, 'String does not match pattern ^[^<>]+$'),
  description: text(140).describe('A note for administrators; users do not see it.'),
  client_secret: text(255).describe(
    'The secret that the application authenticates with. One is generated if none is given.',
  ),
  logo_uri: text().describe('The URL of a logo, which login and consent pages show.'),
  app_type: text(64).describe(
    '`spa`, `native`, `regular_web`, `non_interactive`, or the name of an integration.',
  ),
  callbacks: callbacks.describe(
    'Redirect URIs that are allowed after a login. They are compared character by character; the first label of a host may have one wildcard, such as https://*.app.example.com.',
  ),
  allowed_origins: urlList('url').describe('Origins whose scripts may call the login endpoints (CORS).'),
  web_origins: urlList('url').describe(
    'Origins of the application’s own pages, for silent logins and for responses by web_message.',
  ),
  allowed_logout_urls: urlList('url').describe('URLs that are allowed after a logout.'),
  client_aliases: texts,
  allowed_clients: texts,
  grant_types: texts.describe('The grants that the application may use. Default: those of its type.'),
  token_endpoint_auth_method: z
    .enum(['none', 'client_secret_post', 'client_secret_basic'])
    .describe('How the application authenticates at the token endpoint; `none` if it cannot keep a secret.'),
  client_authentication_methods: object.describe(
    'Keys or certificates that the application authenticates with, in place of a secret.',
  ),
  signed_request_object: object.describe(
    'Whether authorization requests must be signed, and the keys that verify them.',
  ),
  require_pushed_authorization_requests: z
    .boolean()
    .describe('Whether authorization requests must be pushed (RFC 9126).'),
  par_request_expiry: z
    .number()
    .int()
    .min(10)
    .max(600)
    .describe('Lifetime of a pushed authorization request, in seconds.'),
  require_proof_of_possession: z
    .boolean()
    .describe('Whether access tokens must be bound to a key (DPoP or mTLS).'),
  compliance_level: text(64).describe('The FAPI profile that the application must follow.'),
  is_first_party: z
    .boolean()
    .describe('Whether the application is the tenant’s own. Its users are not asked for consent.'),
  oidc_conformant: z
    .boolean()
    .describe('Whether the application follows OpenID Connect, as current SDKs expect.'),
  standard_claims: z
    .boolean()
    .describe('Whether ID tokens contain the standard claims of OpenID Connect Core.'),
  jwt_configuration: object.describe('The signing algorithm and lifetime of ID tokens.'),
  id_token_signed_response_alg: z.enum(TOKEN_ALGS),
  id_token_encrypted_response_alg: z.enum(ENCRYPTION_ALGS),
  id_token_encrypted_response_enc: z.enum(CONTENT_ENCRYPTION),
  refresh_token: object.describe('The lifetime of refresh tokens, and whether they rotate.'),
  oidc_logout: object.describe(
    'The URLs that are notified of a logout (OpenID Connect Back-Channel Logout).',
  ),
  oidc_backchannel_logout: object,
  frontchannel_logout_uri: text().describe(
    'The URL that the signed-out page loads in a frame (OpenID Connect Front-Channel Logout).',
  ),
  session_transfer: object.describe(
    'Whether the application can transfer sessions to a browser (native to web, delegation), and how it accepts them.',
  ),
  organization_usage: z
    .enum(['deny', 'allow', 'require'])
    .describe('Whether users log in as members of an organization: never, optionally or always.'),
  organization_require_behavior: z
    .enum(['no_prompt', 'pre_login_prompt', 'post_login_prompt'])
    .describe('When users are asked for their organization, if one is required.'),
  organization_discovery_methods: z.array(z.enum(['email', 'organization_name'])).min(1),
  default_organization: object.describe(
    'The organization of tokens by client_credentials if the request names none.',
  ),
  sso: z.boolean(),
  sso_disabled: z.boolean(),
  cross_origin_authentication: z
    .boolean()
    .describe('Whether users enter their password in the application’s own page.'),
  cross_origin_auth: z.boolean(),
  cross_origin_loc: text(),
  custom_login_page: text(100_000),
  custom_login_page_on: z.boolean().describe('Whether the customized login page is shown, if there is one.'),
  custom_login_page_preview: text(100_000),
  form_template: text(100_000),
  addons: object,
  client_metadata: clientMetadata.describe('Names and texts, which Actions can read.'),
  mobile: object,
  native_social_login: object,
  initiate_login_uri: loginAddress.describe(
    'The URL of the application that starts a login, for links in e-mails and for bookmarked login pages.',
  ),
  is_token_endpoint_ip_header_trusted: z.boolean(),
  authorization_signed_response_alg: text(64),
  authorization_encrypted_response_alg: text(64),
  authorization_encrypted_response_enc: text(64),
  encryption_key: object,
  token_vault_privileged_access: object.describe(
    'Stored for tools: no application gets connected accounts’ tokens without their user here.',
  ),
  anonymous_sessions: object.describe(
    'Whether visitors can get tokens without logging in, for an anonymous session.',
  ),
  token_exchange: object.describe('The token exchange profiles that the application may use.'),
  token_quota: object,
  skip_non_verifiable_callback_uri_confirmation_prompt: z.boolean(),
  my_organization_configuration: object,
  async_approval_notification_channels: texts.describe(
    'How users are notified of a login to approve: `guardian-push`, `email`.',
  ),
  express_configuration: object,
  fedcm_login: object,
  identity_assertion_authorization_grant: object,
  resource_server_identifier: text(600),
  third_party_security_mode: z
    .enum(SECURITY_MODES)
    .describe(
      'Whether a third party’s application has the rules of OAuth 2.1, and only the APIs that a grant gives it.',
    ),
  redirection_policy: z
    .enum(REDIRECTION_POLICIES)
    .describe('Whether errors that nobody has seen lead to the application’s callback.'),
};

const body = z.strictObject(
  Object.fromEntries(Object.entries(members).map(([name, schema]) => [name, nullable(schema).optional()])),
);
/** The body that changes a client; null removes a member, or a key of its metadata. */
export const patchClientBody = body.extend({
  client_metadata: z.record(text(255), text(255).nullable()).nullish(),
});
export const createClientBody = body.extend({ name: members.name });
