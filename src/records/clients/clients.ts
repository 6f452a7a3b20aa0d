// Applications in the tenant file. Settings of their authentication that would fail at a request or would be unsafe are
// refused.
import { z } from 'zod';
import { SIGNING_ALGS, type SigningAlg, TOKEN_ALGS, type TokenAlg } from '../base/signing-algs.ts';
import { samlpSchema } from '../connections/samlp.ts';
import { calledAddress, clientBackChannelSchema, clientLogoutSchema } from '../connections/upstream.ts';
import { anonymousClientFault, anonymousSessionsSchema } from './anonymous.ts';
import {
  authenticationMethod,
  CREDENTIAL_METHODS,
  HS256_SECRET,
  MIN_SECRET_LENGTH,
} from './client-authentication.ts';
import { certificateCredential, subjectCredential } from './client-certificates.ts';
import {
  CREDENTIAL_ALGORITHMS,
  credentialSchema,
  MAX_ACTIVE_KEYS,
  waitingCredential,
} from './client-credentials.ts';
import { expiryOf } from './client-keys.ts';
import { clientFaults } from './compliance.ts';
import { COMPLIANCE_LEVELS } from './compliance-levels.ts';
import { applicationKey, CONTENT_ENCRYPTION, ENCRYPTION_ALGS, encryptionFault } from './encryption.ts';
import { sessionTransferSchema } from './session-transfer.ts';
import { REDIRECTION_POLICIES, SECURITY_MODES, strictFault } from './third-parties.ts';

/** The client_id of the development page's application, which is not in the tenant file. */
export const TRY_LOGIN = 'gatehouse-try-login';

const seconds = z.number().int().positive();

/** VSCHAR, the characters of a client_id and a client_secret (RFC 6749 appendix A.1 and A.2). */
const printable = z
  .string()
  .regex(/^[\x20-\x7E]*$/, 'must be printable ASCII characters alone (RFC 6749 appendix A)');

const refreshTokenSchema = z.looseObject({
  rotation_type: z.enum(['rotating', 'non-rotating']).default('non-rotating'),
  expiration_type: z.enum(['expiring', 'non-expiring']).default('non-expiring'),
  /** How long a rotated refresh token may still be used, in seconds. */
  leeway: z.number().int().nonnegative().default(0),
  token_lifetime: seconds.default(2592000),
  infinite_token_lifetime: z.boolean().optional(),
  idle_token_lifetime: seconds.default(1296000),
  infinite_idle_token_lifetime: z.boolean().optional(),
  /** Other APIs that a refresh token can be exchanged for, with these scopes. */
  policies: z
    .array(z.looseObject({ audience: z.string().min(1), scope: z.array(z.string()).default([]) }))
    .nullish(),
});

const enabled = z.looseObject({ enabled: z.boolean().optional() }).nullish();

const clientFields = z.looseObject({
  client_id: printable.min(1).max(255),
  name: z.string().min(1),
  description: z.string().optional(),
  logo_uri: z.string().optional(),
  client_secret: printable.min(MIN_SECRET_LENGTH).optional(),
  /** Of an application with a document: its URL, the kind of the document, and who registered it. */
  external_client_id: z.string().optional(),
  external_metadata_type: z.string().optional(),
  external_metadata_created_by: z.string().optional(),
  app_type: z
    .enum([
      'spa',
      'native',
      'regular_web',
      'non_interactive',
      // `resource_server`: an API that is also a client. `express_configuration`: the client that sets up connections
      // for others.
      'resource_server',
      'express_configuration',
      // Third-party services that the hosted service logs in to through add-ons.
      ...([
        ...['rms', 'box', 'cloudbees', 'concur', 'dropbox', 'mscrm', 'echosign', 'egnyte', 'newrelic', 'oag'],
        ...['office365', 'salesforce', 'sentry', 'sharepoint', 'slack', 'springcm', 'zendesk', 'zoom'],
        'sso_integration',
      ] as const),
    ])
    /** Without a type, an application is treated as `regular_web`. */
    .optional(),
  callbacks: z.array(z.string().min(1)).default([]),
  allowed_logout_urls: z.array(z.string()).default([]),
  allowed_origins: z.array(z.string()).default([]),
  web_origins: z.array(z.string()).default([]),
  grant_types: z.array(z.string()).optional(),
  token_endpoint_auth_method: z.enum(['none', 'client_secret_post', 'client_secret_basic']).optional(),
  /** The public keys that verify assertions, or the certificates of mutual TLS; of one method only. */
  client_authentication_methods: z
    .looseObject({
      private_key_jwt: z.looseObject({ credentials: z.array(credentialSchema) }).optional(),
      tls_client_auth: z.looseObject({ credentials: z.array(subjectCredential) }).optional(),
      self_signed_tls_client_auth: z.looseObject({ credentials: z.array(certificateCredential) }).optional(),
    })
    .optional(),
  /** Signed authorization requests (RFC 9101): the public keys, and whether unsigned ones are refused. */
  signed_request_object: z
    .looseObject({ required: z.boolean().optional(), credentials: z.array(credentialSchema).default([]) })
    .nullish(),
  /** Whether authorization requests must be pushed (RFC 9126). */
  require_pushed_authorization_requests: z.boolean().nullish(),
  /** How long a pushed request may be kept, in seconds; 30 by default. */
  par_request_expiry: z.number().int().min(10).max(600).nullish(),
  /** The FAPI profile that the application must comply with. */
  compliance_level: z.enum(COMPLIANCE_LEVELS).nullish(),
  /** Credentials that are registered but not used yet. */
  credentials: z.array(waitingCredential).optional(),
  is_first_party: z.boolean().default(true),
  /** Of a third party's application; `strict` by default. */
  third_party_security_mode: z.enum(SECURITY_MODES).nullish(),
  /** Of a strict one; `open_redirect_protection` by default. */
  redirection_policy: z.enum(REDIRECTION_POLICIES).nullish(),
  /**
   * Whether the header `auth0-forwarded-for` of this application gives its user's address, once the application has
   * authenticated.
   */
  is_token_endpoint_ip_header_trusted: z.boolean().optional(),
  oidc_conformant: z.boolean().default(false),
  /** Our own member: whether claims are as in OpenID Connect Core; by default as `tenant.flags.standard_claims`. */
  standard_claims: z.boolean().optional(),
  jwt_configuration: z
    .looseObject({
      /** RS256 by default. */
      alg: z.enum(TOKEN_ALGS).optional(),
      lifetime_in_seconds: seconds.default(36000),
    })
    .prefault({}),
  /** Our own member, named as in OpenID Connect Registration 1.0 §2; takes precedence over `jwt_configuration.alg`. */
  id_token_signed_response_alg: z.enum(TOKEN_ALGS).optional(),
  /** `/userinfo` answers with a JWT (OpenID Connect Registration 1.0 §2); plain JSON without it. */
  userinfo_signed_response_alg: z.literal('RS256').optional(),
  /** That its request objects must have (OpenID Connect Registration 1.0 §2); any that is supported without it. */
  request_object_signing_alg: z.enum(CREDENTIAL_ALGORITHMS).optional(),
  /** ID tokens and logout tokens are encrypted for `encryption_key` (OpenID Connect Registration 1.0 §2). */
  id_token_encrypted_response_alg: z.enum(ENCRYPTION_ALGS).optional(),
  id_token_encrypted_response_enc: z.enum(CONTENT_ENCRYPTION).optional(),
  // docs/understand/decisions/authorize.md#jwt-responses-are-configured-by-the-names-of-jarm
  /** The signature algorithm of `/authorize` responses as JWTs (JARM §3); RS256 by default. */
  authorization_signed_response_alg: z.enum(SIGNING_ALGS).optional(),
  /** Whether these responses are encrypted for `encryption_key`. */
  authorization_encrypted_response_alg: z.enum(ENCRYPTION_ALGS).optional(),
  authorization_encrypted_response_enc: z.enum(CONTENT_ENCRYPTION).optional(),
  encryption_key: applicationKey.nullish(),
  refresh_token: refreshTokenSchema.prefault({}),
  addons: z.looseObject({ samlp: samlpSchema.optional() }).optional(),
  oidc_logout: clientLogoutSchema.optional(),
  oidc_backchannel_logout: clientBackChannelSchema.optional(),
  /** Whether its mobile app logs users in with a provider's own SDK. */
  native_social_login: z.looseObject({ apple: enabled, google: enabled, facebook: enabled }).nullish(),
  /** Whether it may exchange tokens that the tenant's own actions validate. */
  token_exchange: z.looseObject({ allow_any_profile_of_type: z.array(z.string()).nullish() }).nullish(),
  session_transfer: sessionTransferSchema.nullish(),
  mobile: z
    .looseObject({
      ios: z
        .looseObject({ team_id: z.string().nullish(), app_bundle_identifier: z.string().nullish() })
        .nullish(),
      android: z
        .looseObject({
          app_package_name: z.string().nullish(),
          sha256_cert_fingerprints: z.array(z.string()).nullish(),
        })
        .nullish(),
    })
    .nullish(),
  /** What the logged-out page loads in frames (OpenID Connect Front-Channel Logout 1.0 §2). */
  frontchannel_logout_uri: calledAddress.optional(),
  initiate_login_uri: z.string().optional(),
  /** How users are notified of logins to approve: `guardian-push` or `email`; by default their devices. */
  async_approval_notification_channels: z.array(z.string()).nullish(),
  /**
   * For a client of type `resource_server`: the identifier of the API that it is; it introspects tokens for that API.
   */
  resource_server_identifier: z.string().max(600).nullish(),
  /** The application's own login page, as in `pages`: HTML, or the path of an HTML file. */
  custom_login_page: z.string().optional(),
  /** Whether a customized login page is shown, if there is one; true by default. */
  custom_login_page_on: z.boolean().optional(),
  /** Whether users log in as members of organizations; `deny` by default. */
  organization_usage: z.enum(['deny', 'allow', 'require']).optional(),
  /** The organization of client credentials requests that name none, if the client grant allows organizations. */
  default_organization: z
    .looseObject({
      organization_id: z.string().min(1).max(64),
      flows: z.array(z.literal('client_credentials')).min(1),
    })
    .nullish(),
  /** What happens when an organization is required and a request names none. */
  organization_require_behavior: z.enum(['no_prompt', 'pre_login_prompt', 'post_login_prompt']).optional(),
  /** What the user is then asked for before the login; by default the name of the organization. */
  organization_discovery_methods: z
    .array(z.enum(['email', 'organization_name']))
    .min(1)
    .optional(),
  /** Whether its access tokens must be bound to a key, by DPoP (RFC 9449) or its certificate (RFC 8705). */
  require_proof_of_possession: z.boolean().optional(),
  /** Whether it may get tokens for visitors who have not logged in. */
  anonymous_sessions: anonymousSessionsSchema.nullish(),
  sso_disabled: z.boolean().optional(),
  cross_origin_authentication: z.boolean().optional(),
  client_metadata: z.record(z.string(), z.string()).optional(),
});

/** Returns the signature algorithm of an application's authorization responses, if they are JWTs. */
export function responseAlg(client: {
  readonly authorization_signed_response_alg?: SigningAlg | undefined;
}): SigningAlg {
  return client.authorization_signed_response_alg ?? 'RS256';
}

// docs/understand/decisions/clients-keys.md#id-tokens-of-a-public-application-are-signed-with-rs256-where-it-says-hs256
/** Returns the signature algorithm of an application's ID tokens: RS256 where it says HS256 and has no secret to itself. */
export function idTokenAlg(
  client: Parameters<typeof authenticationMethod>[0] & {
    readonly id_token_signed_response_alg?: TokenAlg | undefined;
    readonly jwt_configuration: { readonly alg?: TokenAlg | undefined };
  },
): TokenAlg {
  if (client.id_token_signed_response_alg !== undefined) return client.id_token_signed_response_alg;
  const { alg = 'RS256' } = client.jwt_configuration;
  return alg === 'HS256' && authenticationMethod(client) === 'none' ? 'RS256' : alg;
}

/** An application. A fault in a combination of members is reported at the member that has to change. */
export const clientSchema = clientFields.superRefine((client, context) => {
  const fault = (message: string, ...path: string[]) => context.addIssue({ code: 'custom', path, message });
  for (const demand of clientFaults(client)) fault(`has rules: ${demand}`, 'compliance_level');
  const strict = strictFault(client);
  if (strict !== undefined) fault(strict.message, strict.member);
  const anonymous = anonymousClientFault(client);
  if (anonymous !== undefined) fault(anonymous, 'anonymous_sessions', 'active');
  const method = authenticationMethod(client);
  const methods = CREDENTIAL_METHODS.filter(
    (one) => client.client_authentication_methods?.[one] !== undefined,
  );
  if (methods.length > 1)
    fault(`has more than one of ${methods.join(', ')}`, 'client_authentication_methods');
  for (const one of methods) {
    const { credentials = [] } = client.client_authentication_methods?.[one] ?? {};
    const live = credentials.filter((credential) => expiryOf(credential) > Date.now());
    if (live.length > MAX_ACTIVE_KEYS)
      fault(
        `at most ${MAX_ACTIVE_KEYS} credentials can be in use at once`,
        'client_authentication_methods',
        one,
        'credentials',
      );
  }
  const [named] = methods;
  if (method === 'none' && named !== undefined && client.token_endpoint_auth_method === undefined)
    fault(
      'is empty, so that the application would not authenticate: if that is intended, set token_endpoint_auth_method to none',
      'client_authentication_methods',
      named,
      'credentials',
    );
  const { required, credentials = [] } = client.signed_request_object ?? {};
  if (required === true && credentials.length === 0) {
    fault(
      'required with request objects, which are verified with them',
      'signed_request_object',
      'credentials',
    );
  }
  const encryption = encryptionFault(client);
  if (encryption !== undefined) fault(encryption.message, ...encryption.path);
  if (idTokenAlg(client) !== 'HS256') return;
  if (method === 'none') {
    fault('HS256 needs an application with a secret', 'id_token_signed_response_alg');
  } else if (methods.length > 0 && client.client_secret === undefined) {
    fault('required with HS256, which signs ID tokens with it', 'client_secret');
  } else if (client.client_secret !== undefined && client.client_secret.length < HS256_SECRET) {
    fault(`must have at least ${HS256_SECRET} characters with HS256 (RFC 7518 §3.2)`, 'client_secret');
  }
});
