// What a caller may set of an application.
import { z } from 'zod';
import { isCallback } from '../../http/schemes.ts';
import { CONTENT_ENCRYPTION, ENCRYPTION_ALGS } from '../../records/encryption.ts';
import { TOKEN_ALGS } from '../../records/signing-algs.ts';

const text = (longest = 1024) => z.string().max(longest);
const texts = z.array(z.string().max(2048)).max(1000);
/** With one that is none the engine takes the application for broken, and nobody could log in to it. */
const callbacks = z
  .array(
    z
      .string()
      .max(2048)
      .refine(isCallback, 'must be an absolute URI without a fragment, such as https://app.example/callback'),
  )
  .max(1000);
const object = z.record(z.string(), z.unknown());
const nullable = <S extends z.ZodType>(schema: S) => schema.nullable();

/** What an application's metadata may be. */
export const clientMetadata = z
  .record(text(255), text(255))
  .refine((all) => Object.keys(all).length <= 10, 'At most 10 keys');

/** Members that a caller sets. Those that mean something here are judged by the tenant file's schema beside. */
const members = {
  name: text(255)
    .min(1)
    .regex(/^[^<>]*$/, 'String does not match pattern ^[^<>]+$'),
  description: text(140).describe('For administrators; users do not see it.'),
  client_secret: text(255).describe(
    'What the application proves itself by; one is made where none is given.',
  ),
  logo_uri: text().describe('A picture that login and consent pages show.'),
  app_type: text(64).describe(
    '`spa`, `native`, `regular_web`, `non_interactive`, or the name of an integration.',
  ),
  callbacks: callbacks.describe(
    'Addresses that a login may come back to. They are compared as they are written.',
  ),
  allowed_origins: texts.describe('Origins whose scripts may call the login endpoints.'),
  web_origins: texts.describe(
    'Origins of the application’s own pages: for silent logins, and for answers by web_message.',
  ),
  allowed_logout_urls: texts.describe('Addresses that a logout may come back to.'),
  client_aliases: texts,
  allowed_clients: texts,
  grant_types: texts.describe('What it may have tokens for. Those of its type where nothing is said.'),
  token_endpoint_auth_method: z
    .enum(['none', 'client_secret_post', 'client_secret_basic'])
    .describe('How it proves itself at the token endpoint; `none` for one that can keep no secret.'),
  client_authentication_methods: object.describe(
    'Keys or certificates that it proves itself by, in place of a secret.',
  ),
  signed_request_object: object.describe('Whether its authorization requests must be signed, and the keys.'),
  require_pushed_authorization_requests: z
    .boolean()
    .describe('Whether its authorization requests must be pushed (RFC 9126).'),
  par_request_expiry: z.number().int().min(10).max(600).describe('Seconds that a pushed request is kept.'),
  require_proof_of_possession: z
    .boolean()
    .describe('Whether its access tokens are bound to a key (DPoP, mTLS).'),
  compliance_level: text(64).describe('A profile of FAPI that it is held to.'),
  is_first_party: z.boolean().describe('Whether it is the tenant’s own: its users are asked for no consent.'),
  oidc_conformant: z.boolean().describe('Whether it behaves as current SDKs expect.'),
  standard_claims: z.boolean().describe('Whether claims are as OpenID Connect Core has them.'),
  jwt_configuration: object.describe('How ID tokens are signed, and how long they are good for.'),
  id_token_signed_response_alg: z.enum(TOKEN_ALGS),
  id_token_encrypted_response_alg: z.enum(ENCRYPTION_ALGS),
  id_token_encrypted_response_enc: z.enum(CONTENT_ENCRYPTION),
  refresh_token: object.describe('How long refresh tokens are good for, and whether they rotate.'),
  oidc_logout: object.describe('Which addresses are told of a logout (back-channel).'),
  oidc_backchannel_logout: object,
  frontchannel_logout_uri: text().describe('An address that the signed-out page frames.'),
  session_transfer: object.describe(
    'Whether it hands sessions over to browsers (native to web, delegation), and how it takes them.',
  ),
  organization_usage: z
    .enum(['deny', 'allow', 'require'])
    .describe('Whether its users log in as members of organizations.'),
  organization_require_behavior: z
    .enum(['no_prompt', 'pre_login_prompt', 'post_login_prompt'])
    .describe('When users are asked for their organization, where one is required.'),
  organization_discovery_methods: z.array(z.enum(['email', 'organization_name'])).min(1),
  default_organization: object.describe(
    'The organization of its own tokens (client_credentials) whose requests name none.',
  ),
  sso: z.boolean(),
  sso_disabled: z.boolean(),
  cross_origin_authentication: z
    .boolean()
    .describe('Whether users type their password in the application’s own page.'),
  cross_origin_auth: z.boolean(),
  cross_origin_loc: text(),
  custom_login_page: text(100_000),
  custom_login_page_on: z
    .boolean()
    .describe('Whether the customized login page is shown, where there is one.'),
  custom_login_page_preview: text(100_000),
  form_template: text(100_000),
  addons: object,
  client_metadata: clientMetadata.describe('Texts by name; Actions read them.'),
  mobile: object,
  native_social_login: object,
  initiate_login_uri: text().describe(
    'Where a login can be begun from outside: by links of mails, or by a bookmark of a login page.',
  ),
  is_token_endpoint_ip_header_trusted: z.boolean(),
  authorization_signed_response_alg: text(64),
  authorization_encrypted_response_alg: text(64),
  authorization_encrypted_response_enc: text(64),
  encryption_key: object,
  anonymous_sessions: object.describe('Whether visitors who have not logged in get tokens that name nobody.'),
  token_exchange: object.describe('Which profiles of token exchange it may use.'),
  token_quota: object,
  skip_non_verifiable_callback_uri_confirmation_prompt: z.boolean(),
  my_organization_configuration: object,
  async_approval_notification_channels: texts.describe(
    'How users are told of a login that they are to approve: `guardian-push`, `email`.',
  ),
  express_configuration: object,
  fedcm_login: object,
  identity_assertion_authorization_grant: object,
  resource_server_identifier: text(600),
  third_party_security_mode: text(64),
  redirection_policy: text(64),
};

const body = z.strictObject(
  Object.fromEntries(Object.entries(members).map(([name, schema]) => [name, nullable(schema).optional()])),
);
/** The body that changes an application: null removes a member, and a key of its metadata. */
export const patchClientBody = body.extend({
  client_metadata: z.record(text(255), text(255).nullable()).nullish(),
});
/** The body that makes one. */
export const createClientBody = body.extend({ name: members.name });
