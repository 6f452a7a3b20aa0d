// The tenant in the vocabulary of the hosted service's deploy tool (design.md §6): the shape of
// config/tenant.yaml, and of the records that the tenant file becomes in the store.
// Objects are loose: what we do not know is kept (export gives it back) and named in a warning.
import { z } from 'zod';
import { emailProviderSchema, emailTemplateSchema } from './schema-delivery.ts';
import { guardianFactorsSchema, guardianPoliciesSchema, webPushSchema } from './schema-guardian.ts';
import {
  calledAddress,
  clientBackChannelSchema,
  clientLogoutSchema,
  tenantLogoutSchema,
} from './schema-logout.ts';
import { attackProtectionSchema } from './schema-protection.ts';
import { samlpSchema } from './schema-saml.ts';

/** The application of the development page, which is in no tenant file. */
export const TRY_LOGIN = 'gatehouse-try-login';

const httpsOrCustomUri = z.string().min(1);
const seconds = z.number().int().positive();
const hours = z.number().positive();

export const refreshTokenSchema = z.looseObject({
  rotation_type: z.enum(['rotating', 'non-rotating']).default('non-rotating'),
  expiration_type: z.enum(['expiring', 'non-expiring']).default('non-expiring'),
  /** Seconds during which a rotated token may still be used. */
  leeway: z.number().int().nonnegative().default(0),
  token_lifetime: seconds.default(2592000),
  infinite_token_lifetime: z.boolean().optional(),
  idle_token_lifetime: seconds.default(1296000),
  infinite_idle_token_lifetime: z.boolean().optional(),
});

export const clientSchema = z.looseObject({
  client_id: z.string().min(1).max(255),
  name: z.string().min(1),
  description: z.string().optional(),
  logo_uri: z.string().optional(),
  client_secret: z.string().min(1).optional(),
  app_type: z.enum(['spa', 'native', 'regular_web', 'non_interactive']).default('regular_web'),
  callbacks: z.array(httpsOrCustomUri).default([]),
  allowed_logout_urls: z.array(z.string()).default([]),
  allowed_origins: z.array(z.string()).default([]),
  web_origins: z.array(z.string()).default([]),
  grant_types: z.array(z.string()).optional(),
  token_endpoint_auth_method: z.enum(['none', 'client_secret_post', 'client_secret_basic']).optional(),
  /** private_key_jwt: the public keys that assertions are verified with. */
  client_authentication_methods: z
    .looseObject({
      private_key_jwt: z
        .looseObject({
          credentials: z.array(
            z.looseObject({
              name: z.string().optional(),
              alg: z.enum(['RS256', 'RS384', 'PS256', 'PS384', 'ES256', 'ES384']).default('RS256'),
              /** PEM (SPKI) public key. */
              pem: z.string().optional(),
              /** Or the public key as a JWK. */
              jwk: z.record(z.string(), z.unknown()).optional(),
            }),
          ),
        })
        .optional(),
    })
    .optional(),
  is_first_party: z.boolean().default(true),
  /** Whether `auth0-forwarded-for` of this application, once authenticated, names its user's address. */
  is_token_endpoint_ip_header_trusted: z.boolean().optional(),
  oidc_conformant: z.boolean().default(false),
  jwt_configuration: z
    .looseObject({
      alg: z.enum(['RS256', 'HS256']).default('RS256'),
      lifetime_in_seconds: seconds.default(36000),
    })
    .prefault({}),
  refresh_token: refreshTokenSchema.prefault({}),
  addons: z.looseObject({ samlp: samlpSchema.optional() }).optional(),
  oidc_logout: clientLogoutSchema.optional(),
  oidc_backchannel_logout: clientBackChannelSchema.optional(),
  /** What the signed-out page frames (OpenID Connect Front-Channel Logout 1.0 §2). */
  frontchannel_logout_uri: calledAddress.optional(),
  initiate_login_uri: z.string().optional(),
  organization_usage: z.enum(['deny', 'allow', 'require']).optional(),
  sso_disabled: z.boolean().optional(),
  cross_origin_authentication: z.boolean().optional(),
  client_metadata: z.record(z.string(), z.string()).optional(),
});

export const passwordPolicySchema = z.enum(['none', 'low', 'fair', 'good', 'excellent']);

export const databaseOptionsSchema = z.looseObject({
  passwordPolicy: passwordPolicySchema.default('good'),
  password_complexity_options: z
    .looseObject({ min_length: z.number().int().min(1).max(128).optional() })
    .optional(),
  password_history: z
    .looseObject({
      enable: z.boolean().default(false),
      size: z.number().int().min(0).max(24).default(5),
    })
    .optional(),
  password_dictionary: z
    .looseObject({ enable: z.boolean().default(false), dictionary: z.array(z.string()).default([]) })
    .optional(),
  password_no_personal_info: z.looseObject({ enable: z.boolean().default(false) }).optional(),
  requires_username: z.boolean().default(false),
  validation: z
    .looseObject({
      username: z
        .looseObject({
          min: z.number().int().min(1).max(128).default(1),
          max: z.number().int().min(1).max(128).default(15),
        })
        .optional(),
    })
    .optional(),
  disable_signup: z.boolean().default(false),
  brute_force_protection: z.boolean().default(true),
});

const connectionFields = {
  id: z.string().optional(),
  name: z
    .string()
    .max(128)
    .regex(/^[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?$/, 'alphanumerics and dashes, alphanumeric at both ends'),
  display_name: z.string().optional(),
  /** client_ids, or names of applications in the tenant file (resolved when it is applied). */
  enabled_clients: z.array(z.string()).default([]),
  realms: z.array(z.string()).optional(),
  is_domain_connection: z.boolean().default(false),
};

export const databaseSchema = z.looseObject({
  ...connectionFields,
  strategy: z.literal('auth0').default('auth0'),
  options: databaseOptionsSchema.prefault({}),
});

export const connectionSchema = z.looseObject({
  ...connectionFields,
  strategy: z.string().min(1),
  options: z.record(z.string(), z.unknown()).default({}),
});

export const resourceServerSchema = z.looseObject({
  id: z.string().optional(),
  name: z.string().min(1),
  identifier: z.string().min(1),
  scopes: z
    .array(z.looseObject({ value: z.string().min(1), description: z.string().optional() }))
    .default([]),
  signing_alg: z.enum(['RS256', 'HS256']).default('RS256'),
  signing_secret: z.string().min(16).optional(),
  token_lifetime: seconds.default(86400),
  token_lifetime_for_web: seconds.default(7200),
  allow_offline_access: z.boolean().default(false),
  skip_consent_for_verifiable_first_party_clients: z.boolean().default(true),
  enforce_policies: z.boolean().default(false),
  token_dialect: z
    .enum(['access_token', 'access_token_authz', 'rfc9068_profile', 'rfc9068_profile_authz'])
    .default('access_token'),
});

export const clientGrantSchema = z.looseObject({
  id: z.string().optional(),
  client_id: z.string().min(1),
  audience: z.string().min(1),
  scope: z.array(z.string()).default([]),
});

export const organizationSchema = z.looseObject({
  id: z.string().optional(),
  name: z.string().min(1),
  display_name: z.string().optional(),
});

export const tenantSettingsSchema = z.looseObject({
  friendly_name: z.string().default('Gatehouse'),
  picture_url: z.string().optional(),
  support_email: z.string().optional(),
  support_url: z.string().optional(),
  allowed_logout_urls: z.array(z.string()).default([]),
  enabled_locales: z.array(z.string()).min(1).default(['en', 'de', 'ar']),
  /** Hours. */
  session_lifetime: hours.default(168),
  /** Hours. */
  idle_session_lifetime: hours.default(72),
  default_directory: z.string().optional(),
  default_audience: z.string().optional(),
  oidc_logout: tenantLogoutSchema.optional(),
  flags: z.record(z.string(), z.unknown()).default({}),
});

export const brandingSchema = z.looseObject({
  logo_url: z.string().optional(),
  favicon_url: z.string().optional(),
  colors: z
    .looseObject({
      primary: z
        .string()
        .regex(/^#[0-9a-fA-F]{6}$/)
        .optional(),
      page_background: z
        .string()
        .regex(/^#[0-9a-fA-F]{6}$/)
        .optional(),
    })
    .prefault({}),
  terms_url: z.string().optional(),
  privacy_url: z.string().optional(),
});

/** A development user of the tenant file (`users`), in the connection named or the default directory. */
export const developmentUserSchema = z.looseObject({
  email: z.string().min(3),
  password: z.string().min(1),
  connection: z.string().optional(),
  username: z.string().optional(),
  email_verified: z.boolean().default(false),
  blocked: z.boolean().optional(),
  multifactor: z.array(z.string()).optional(),
  permissions: z
    .array(z.looseObject({ resource_server_identifier: z.string(), permission_name: z.string() }))
    .optional(),
  user_metadata: z.record(z.string(), z.unknown()).default({}),
  app_metadata: z.record(z.string(), z.unknown()).default({}),
});

export const tenantFileSchema = z.looseObject({
  vendor_host: z
    .string()
    .regex(/^[a-z0-9.-]+$/)
    .default('auth0.com'),
  vendor_channel: z
    .string()
    .regex(/^[a-z0-9-]+$/)
    .default('auth0'),
  tenant: tenantSettingsSchema.prefault({}),
  branding: brandingSchema.prefault({}),
  clients: z.array(clientSchema).default([]),
  databases: z.array(databaseSchema).default([]),
  connections: z.array(connectionSchema).default([]),
  resourceServers: z.array(resourceServerSchema).default([]),
  clientGrants: z.array(clientGrantSchema).default([]),
  organizations: z.array(organizationSchema).default([]),
  users: z.array(developmentUserSchema).default([]),
  guardianFactors: guardianFactorsSchema,
  guardianPolicies: guardianPoliciesSchema,
  webPush: webPushSchema,
  emailProvider: emailProviderSchema.optional(),
  emailTemplates: z.array(emailTemplateSchema).default([]),
  pages: z.array(z.record(z.string(), z.unknown())).optional(),
  attackProtection: attackProtectionSchema.prefault({}),
});

export type TenantFile = z.output<typeof tenantFileSchema>;
export type ClientRecord = z.output<typeof clientSchema>;
export type DatabaseOptions = z.output<typeof databaseOptionsSchema>;
export type ConnectionRecord = z.output<typeof connectionSchema>;
export type ResourceServerRecord = z.output<typeof resourceServerSchema>;
export type ClientGrantRecord = z.output<typeof clientGrantSchema>;
export type OrganizationRecord = z.output<typeof organizationSchema>;
export type DevelopmentUser = z.output<typeof developmentUserSchema>;

/** The parts of the tenant file that are one record in the store (id `tenant`). */
export type TenantRecord = Pick<
  TenantFile,
  'vendor_host' | 'vendor_channel' | 'tenant' | 'branding' | 'attackProtection'
> &
  // A store that an older version wrote has none.
  Partial<Pick<TenantFile, 'emailTemplates' | 'guardianFactors' | 'guardianPolicies' | 'webPush'>> & {
    [section: string]: unknown;
  };
