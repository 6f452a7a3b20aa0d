// What a caller may set of an application.
import { z } from 'zod';
import { CONTENT_ENCRYPTION, ENCRYPTION_ALGS } from '../../records/encryption.ts';
import { TOKEN_ALGS } from '../../records/signing-algs.ts';

const text = (longest = 1024) => z.string().max(longest);
const texts = z.array(z.string().max(2048)).max(1000);
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
  description: text(140),
  client_secret: text(255),
  logo_uri: text(),
  app_type: text(64),
  callbacks: texts,
  allowed_origins: texts,
  web_origins: texts,
  allowed_logout_urls: texts,
  client_aliases: texts,
  allowed_clients: texts,
  grant_types: texts,
  token_endpoint_auth_method: z.enum(['none', 'client_secret_post', 'client_secret_basic']),
  client_authentication_methods: object,
  signed_request_object: object,
  require_pushed_authorization_requests: z.boolean(),
  par_request_expiry: z.number().int().min(10).max(600),
  require_proof_of_possession: z.boolean(),
  compliance_level: text(64),
  is_first_party: z.boolean(),
  oidc_conformant: z.boolean(),
  standard_claims: z.boolean(),
  jwt_configuration: object,
  id_token_signed_response_alg: z.enum(TOKEN_ALGS),
  id_token_encrypted_response_alg: z.enum(ENCRYPTION_ALGS),
  id_token_encrypted_response_enc: z.enum(CONTENT_ENCRYPTION),
  refresh_token: object,
  oidc_logout: object,
  oidc_backchannel_logout: object,
  frontchannel_logout_uri: text(),
  session_transfer: object,
  organization_usage: z.enum(['deny', 'allow', 'require']),
  organization_require_behavior: z.enum(['no_prompt', 'pre_login_prompt', 'post_login_prompt']),
  organization_discovery_methods: z.array(z.enum(['email', 'organization_name'])).min(1),
  default_organization: object,
  sso: z.boolean(),
  sso_disabled: z.boolean(),
  cross_origin_authentication: z.boolean(),
  cross_origin_auth: z.boolean(),
  cross_origin_loc: text(),
  custom_login_page: text(100_000),
  custom_login_page_on: z.boolean(),
  custom_login_page_preview: text(100_000),
  form_template: text(100_000),
  addons: object,
  client_metadata: clientMetadata,
  mobile: object,
  native_social_login: object,
  initiate_login_uri: text(),
  is_token_endpoint_ip_header_trusted: z.boolean(),
  authorization_signed_response_alg: text(64),
  authorization_encrypted_response_alg: text(64),
  authorization_encrypted_response_enc: text(64),
  encryption_key: object,
  token_exchange: object,
  token_quota: object,
  skip_non_verifiable_callback_uri_confirmation_prompt: z.boolean(),
  my_organization_configuration: object,
  async_approval_notification_channels: texts,
  express_configuration: object,
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
