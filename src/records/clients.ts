// Applications in the tenant file, and what of their authentication could not work at a request or would not be safe.
import { z } from 'zod';
import { anonymousClientFault, anonymousSessionsSchema } from './anonymous.ts';
import {
  authenticationMethod,
  CREDENTIAL_METHODS,
  HS256_SECRET,
  LEAST_SECRET,
} from './client-authentication.ts';
import { certificateCredential, subjectCredential } from './client-certificates.ts';
import { credentialSchema, MOST_LIVE, waitingCredential } from './client-credentials.ts';
import { expiryOf } from './client-keys.ts';
import { clientFaults } from './compliance.ts';
import { COMPLIANCE_LEVELS } from './compliance-levels.ts';
import { applicationKey, CONTENT_ENCRYPTION, ENCRYPTION_ALGS, encryptionFault } from './encryption.ts';
import { calledAddress, clientBackChannelSchema, clientLogoutSchema } from './logout.ts';
import { samlpSchema } from './samlp.ts';
import { sessionTransferSchema } from './session-transfer.ts';
import { SIGNING_ALGS, type SigningAlg, TOKEN_ALGS, type TokenAlg } from './signing-algs.ts';

/** The application of the development page, which is in no tenant file. */
export const TRY_LOGIN = 'gatehouse-try-login';

const seconds = z.number().int().positive();

/** VSCHAR: what a client_id and a client_secret may be made of (RFC 6749 appendix A.1 and A.2). */
const printable = z
  .string()
  .regex(/^[\x20-\x7E]*$/, 'must be printable ASCII characters alone (RFC 6749 appendix A)');

const refreshTokenSchema = z.looseObject({
  rotation_type: z.enum(['rotating', 'non-rotating']).default('non-rotating'),
  expiration_type: z.enum(['expiring', 'non-expiring']).default('non-expiring'),
  /** Seconds during which a rotated token may still be used. */
  leeway: z.number().int().nonnegative().default(0),
  token_lifetime: seconds.default(2592000),
  infinite_token_lifetime: z.boolean().optional(),
  idle_token_lifetime: seconds.default(1296000),
  infinite_idle_token_lifetime: z.boolean().optional(),
  /** APIs that a refresh token is exchanged for besides its own, with these scopes. */
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
  client_secret: printable.min(LEAST_SECRET).optional(),
  app_type: z
    .enum([
      'spa',
      'native',
      'regular_web',
      'non_interactive',
      // An API that is a client of its own, and the client that sets connections up for others.
      'resource_server',
      'express_configuration',
      // Services of others that the hosted service logs in to by its add-ons.
      ...([
        ...['rms', 'box', 'cloudbees', 'concur', 'dropbox', 'mscrm', 'echosign', 'egnyte', 'newrelic', 'oag'],
        ...['office365', 'salesforce', 'sentry', 'sharepoint', 'slack', 'springcm', 'zendesk', 'zoom'],
        'sso_integration',
      ] as const),
    ])
    .default('regular_web'),
  callbacks: z.array(z.string().min(1)).default([]),
  allowed_logout_urls: z.array(z.string()).default([]),
  allowed_origins: z.array(z.string()).default([]),
  web_origins: z.array(z.string()).default([]),
  grant_types: z.array(z.string()).optional(),
  token_endpoint_auth_method: z.enum(['none', 'client_secret_post', 'client_secret_basic']).optional(),
  /** The public keys that assertions are verified with, or the certificates of mutual TLS: of one method. */
  client_authentication_methods: z
    .looseObject({
      private_key_jwt: z.looseObject({ credentials: z.array(credentialSchema) }).optional(),
      tls_client_auth: z.looseObject({ credentials: z.array(subjectCredential) }).optional(),
      self_signed_tls_client_auth: z.looseObject({ credentials: z.array(certificateCredential) }).optional(),
    })
    .optional(),
  /** Signed authorization requests (RFC 9101): the public keys, and whether there are no others. */
  signed_request_object: z
    .looseObject({ required: z.boolean().optional(), credentials: z.array(credentialSchema).default([]) })
    .nullish(),
  /** Whether its authorization requests have to be pushed (RFC 9126). */
  require_pushed_authorization_requests: z.boolean().nullish(),
  /** Seconds that a pushed request may be kept; 30 where it says nothing. */
  par_request_expiry: z.number().int().min(10).max(600).nullish(),
  /** The profile of FAPI that it is held to. */
  compliance_level: z.enum(COMPLIANCE_LEVELS).nullish(),
  /** Credentials that are kept for it and not used yet. */
  credentials: z.array(waitingCredential).optional(),
  is_first_party: z.boolean().default(true),
  /** Whether `auth0-forwarded-for` of this application, once authenticated, names its user's address. */
  is_token_endpoint_ip_header_trusted: z.boolean().optional(),
  oidc_conformant: z.boolean().default(false),
  /** Ours: claims as OpenID Connect Core has them; `tenant.flags.standard_claims` where it says nothing. */
  standard_claims: z.boolean().optional(),
  jwt_configuration: z
    .looseObject({
      alg: z.enum(TOKEN_ALGS).default('RS256'),
      lifetime_in_seconds: seconds.default(36000),
    })
    .prefault({}),
  /** Ours, by the name of OpenID Connect Registration 1.0 §2: in place of `jwt_configuration.alg`. */
  id_token_signed_response_alg: z.enum(TOKEN_ALGS).optional(),
  /** ID tokens and logout tokens are encrypted for `encryption_key` (OpenID Connect Registration 1.0 §2). */
  id_token_encrypted_response_alg: z.enum(ENCRYPTION_ALGS).optional(),
  id_token_encrypted_response_enc: z.enum(CONTENT_ENCRYPTION).optional(),
  /** Responses of `/authorize` as JWTs (JARM §3): what they are signed with, RS256 where it says nothing. */
  authorization_signed_response_alg: z.enum(SIGNING_ALGS).optional(),
  /** And they are encrypted for `encryption_key`. */
  authorization_encrypted_response_alg: z.enum(ENCRYPTION_ALGS).optional(),
  authorization_encrypted_response_enc: z.enum(CONTENT_ENCRYPTION).optional(),
  encryption_key: applicationKey.nullish(),
  refresh_token: refreshTokenSchema.prefault({}),
  addons: z.looseObject({ samlp: samlpSchema.optional() }).optional(),
  oidc_logout: clientLogoutSchema.optional(),
  oidc_backchannel_logout: clientBackChannelSchema.optional(),
  /** Whether its app on phones logs users in by a provider's own kit. */
  native_social_login: z.looseObject({ apple: enabled, google: enabled, facebook: enabled }).nullish(),
  /** Whether it may have tokens exchanged that the tenant's own actions judge. */
  token_exchange: z.looseObject({ allow_any_profile_of_type: z.array(z.string()).nullish() }).nullish(),
  session_transfer: sessionTransferSchema.nullish(),
  mobile: z
    .looseObject({
      ios: z.looseObject({ app_bundle_identifier: z.string().nullish() }).nullish(),
      android: z.looseObject({ sha256_cert_fingerprints: z.array(z.string()).nullish() }).nullish(),
    })
    .nullish(),
  /** What the signed-out page frames (OpenID Connect Front-Channel Logout 1.0 §2). */
  frontchannel_logout_uri: calledAddress.optional(),
  initiate_login_uri: z.string().optional(),
  /** How users are told of logins that they are to approve: `guardian-push`, `email`; devices where nothing is said. */
  async_approval_notification_channels: z.array(z.string()).nullish(),
  /** The API that a client of type `resource_server` is of: it asks about the tokens that the API is given. */
  resource_server_identifier: z.string().max(600).nullish(),
  /** A login page of this application's own, as `pages` has it; HTML, or the path of a file of it. */
  custom_login_page: z.string().optional(),
  /** Whether a customized login page is shown, where there is one; the default. */
  custom_login_page_on: z.boolean().optional(),
  /** Whether users log in as members of organizations; `deny` where it says nothing. */
  organization_usage: z.enum(['deny', 'allow', 'require']).optional(),
  /** The organization of its own tokens whose requests name none, where the client grant allows organizations. */
  default_organization: z
    .looseObject({
      organization_id: z.string().min(1).max(64),
      flows: z.array(z.literal('client_credentials')).min(1),
    })
    .nullish(),
  /** What happens where an organization is required and a request names none. */
  organization_require_behavior: z.enum(['no_prompt', 'pre_login_prompt', 'post_login_prompt']).optional(),
  /** What is asked for then, before the login: the organization's name, where it says nothing. */
  organization_discovery_methods: z
    .array(z.enum(['email', 'organization_name']))
    .min(1)
    .optional(),
  /** Whether its access tokens are bound to a key: by DPoP (RFC 9449), or its certificate (RFC 8705). */
  require_proof_of_possession: z.boolean().optional(),
  /** Whether visitors who have not logged in get tokens that name nobody. */
  anonymous_sessions: anonymousSessionsSchema.nullish(),
  sso_disabled: z.boolean().optional(),
  cross_origin_authentication: z.boolean().optional(),
  client_metadata: z.record(z.string(), z.string()).optional(),
});

/** What the responses of an application's authorization requests are signed with, where they are JWTs. */
export function responseAlg(client: {
  readonly authorization_signed_response_alg?: SigningAlg | undefined;
}): SigningAlg {
  return client.authorization_signed_response_alg ?? 'RS256';
}

/** What ID tokens and logout tokens of an application are signed with. */
export function idTokenAlg(client: {
  readonly id_token_signed_response_alg?: TokenAlg | undefined;
  readonly jwt_configuration: { readonly alg: TokenAlg };
}): TokenAlg {
  return client.id_token_signed_response_alg ?? client.jwt_configuration.alg;
}

/** An application. The faults of several keys together are of the one that has to change. */
export const clientSchema = clientFields.superRefine((client, context) => {
  const fault = (message: string, ...path: string[]) => context.addIssue({ code: 'custom', path, message });
  for (const demand of clientFaults(client)) fault(`has rules: ${demand}`, 'compliance_level');
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
    if (live.length > MOST_LIVE)
      fault(
        `at most ${MOST_LIVE} credentials can be in use at once`,
        'client_authentication_methods',
        one,
        'credentials',
      );
  }
  if (method === 'none' && client.grant_types?.includes('client_credentials') === true) {
    fault(
      'client_credentials is for applications that prove who they are, and this one does not',
      'grant_types',
    );
  }
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
    fault('HS256 needs an application with a secret', 'jwt_configuration', 'alg');
  } else if (methods.length > 0 && client.client_secret === undefined) {
    fault('required with HS256, which signs ID tokens with it', 'client_secret');
  } else if (client.client_secret !== undefined && client.client_secret.length < HS256_SECRET) {
    fault(`must have at least ${HS256_SECRET} characters with HS256 (RFC 7518 §3.2)`, 'client_secret');
  }
});
