// The tenant in the vocabulary of the hosted service's deploy tool: the shape of
// config/tenant.yaml, and of the records that the tenant file becomes in the store.
// Objects are loose: what we do not know is kept (export gives it back) and named in a warning.
import { z } from 'zod';
import { tenantSessionsSchema } from './anonymous.ts';
import { clientGrantSchema, resourceServerSchema } from './apis.ts';
import { clientSchema } from './clients.ts';
import { connectionSchema, type databaseOptionsSchema, writtenDatabaseSchema } from './connections.ts';
import { customClaimsSchema } from './custom-claims.ts';
import { emailProviderSchema, emailTemplateSchema } from './delivery.ts';
import { documentSections, promptSections } from './documents.ts';
import { guardianFactorsSchema, guardianPoliciesSchema, webPushSchema } from './guardian.ts';
import { tenantLogoutSchema } from './logout.ts';
import { pageSchema } from './pages.ts';
import { attackProtectionSchema } from './protection.ts';
import { roleSchema } from './roles.ts';
import { PROFILE_CLAIMS, type ProfileClaim } from './users.ts';

const hours = z.number().positive();

export const organizationSchema = z.looseObject({
  id: z.string().optional(),
  name: z.string().min(1),
  display_name: z.string().optional(),
  branding: z.record(z.string(), z.unknown()).optional(),
  metadata: z.record(z.string(), z.unknown()).optional(),
  discovery_domains: z
    .array(
      z.looseObject({
        domain: z.string().min(1).toLowerCase(),
        status: z.enum(['pending', 'verified']).default('pending'),
        use_for_organization_discovery: z.boolean().optional(),
      }),
    )
    .optional(),
  /** Of the tenant file, by name; in the store `enabled_connections` has them by id. */
  connections: z
    .array(
      z.looseObject({
        name: z.string().min(1),
        assign_membership_on_login: z.boolean().optional(),
        show_as_button: z.boolean().optional(),
        is_signup_enabled: z.boolean().optional(),
      }),
    )
    .optional(),
});

/** Flags that mean something here; others are kept as they are. */
const FLAGS = [
  'enable_public_signup_user_exists_error',
  'keep_sessions_on_password_reset',
  'mfa_for_passwordless',
  'require_dpop_nonce',
  'require_pushed_authorization_requests',
  // Ours: OpenID Connect Session Management 1.0.
  'session_management',
  'standard_claims',
];

const flagsSchema = z.record(z.string(), z.unknown()).superRefine((flags, context) => {
  for (const name of FLAGS) {
    if (flags[name] === undefined || typeof flags[name] === 'boolean') continue;
    context.addIssue({ code: 'custom', path: [name], message: 'must be true or false' });
  }
});

/** How many characters of each set a user code has at least: about 2^30 codes, for what guesses can be counted. */
const LEAST_CODE = { base20: 7, digits: 9 };

const deviceFlowSchema = z
  .looseObject({
    charset: z.enum(['base20', 'digits']).default('base20'),
    /** `*` is a character of the code; hyphens and spaces stand for themselves. */
    mask: z
      .string()
      .regex(/^[* -]{1,20}$/, 'must be made of *, hyphens and spaces, at most 20 of them')
      .optional(),
  })
  .transform(({ charset, mask = charset === 'digits' ? '***-***-***' : '****-****', ...rest }) => ({
    ...rest,
    charset,
    mask,
  }))
  .refine(({ charset, mask }) => mask.split('*').length > LEAST_CODE[charset], {
    path: ['mask'],
    message: 'has too few characters: a code must have at least 7 letters, or 9 digits (RFC 8628 §6.1)',
  });

/** How the codes of devices look. */
export type DeviceFlowSettings = z.output<typeof deviceFlowSchema>;

/** The page where users look after their own account. */
const accountPageSchema = z.strictObject({
  enabled: z.boolean().default(true),
  /** The application that users log in for who come without one. */
  client_id: z.string().optional(),
  /** Whether users may delete their account. */
  allow_deletion: z.boolean().default(false),
});

const settingsSchema = z.looseObject({
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
  /** Ours: whether somebody new from an upstream provider is asked to link an account with their address to theirs. */
  account_linking: z.enum(['never', 'suggest']).default('never'),
  /** Ours: the page at `/account`, where users look after their own account. */
  account_page: accountPageSchema.prefault({}),
  oidc_logout: tenantLogoutSchema.optional(),
  /** Whether `/oauth/par` is there (RFC 9126); it is unless this is false. */
  pushed_authorization_requests_supported: z.boolean().optional(),
  device_flow: deviceFlowSchema.prefault({}),
  sessions: tenantSessionsSchema.nullish(),
  /** Ours: how long events of the log are kept. */
  log_retention_days: z.number().int().min(1).max(3650).nullish(),
  flags: flagsSchema.default({}),
  /** Whether discovery names the endpoints at `mtls.` of the custom domain (RFC 8705 §5). */
  mtls: z.looseObject({ enable_endpoint_aliases: z.boolean().default(false) }).nullish(),
});

/** An empty text for one of these is none: tools and exports of the hosted service say so where nothing was chosen. */
const CHOICES = ['default_directory', 'default_audience'];

export const tenantSettingsSchema = z.preprocess(
  (value) =>
    typeof value === 'object' && value !== null
      ? Object.fromEntries(
          Object.entries(value).filter(([name, member]) => member !== '' || !CHOICES.includes(name)),
        )
      : value,
  settingsSchema,
);

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
        .union([
          z.string().regex(/^#[0-9a-fA-F]{6}$/),
          // From one colour to another, at an angle.
          z.looseObject({ type: z.string(), start: z.string().regex(/^#[0-9a-fA-F]{6}$/) }),
        ])
        .optional(),
    })
    .prefault({}),
  terms_url: z.string().optional(),
  privacy_url: z.string().optional(),
  /** Of the tenant file; in the store they are documents. */
  templates: z.array(z.looseObject({ template: z.string(), body: z.string() })).optional(),
});

/** The claims of the profile (OpenID Connect Core §5.1), each of one kind. */
function profileClaims<T>(kind: T): Record<ProfileClaim, T> {
  return Object.fromEntries(PROFILE_CLAIMS.map((claim) => [claim, kind])) as Record<ProfileClaim, T>;
}

/** The profile of a development user. */
export const developmentProfileSchema = z.object({
  ...profileClaims(z.string().exactOptional()),
  phone_number: z.string().exactOptional(),
  phone_verified: z.boolean().exactOptional(),
  address: z.record(z.string(), z.string()).exactOptional(),
});

/** A development user of the tenant file (`users`), in the connection named or the default directory. */
const developmentUserSchema = z.looseObject({
  ...developmentProfileSchema.shape,
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

const promptFields = {
  universal_login_experience: z.enum(['new', 'classic']).optional(),
  identifier_first: z.boolean().optional(),
  webauthn_platform_first_factor: z.boolean().optional(),
  ...promptSections,
};

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
  databases: z.array(writtenDatabaseSchema).default([]),
  connections: z.array(connectionSchema).default([]),
  resourceServers: z.array(resourceServerSchema).default([]),
  clientGrants: z.array(clientGrantSchema).default([]),
  organizations: z.array(organizationSchema).default([]),
  roles: z.array(roleSchema).optional(),
  ...documentSections,
  prompts: z.looseObject(promptFields).optional(),
  guardianSettings: z.record(z.string(), z.unknown()).optional(),
  users: z.array(developmentUserSchema).default([]),
  /** Ours: claims that the tenant declares. */
  customClaims: customClaimsSchema.optional(),
  guardianFactors: guardianFactorsSchema,
  guardianPolicies: guardianPoliciesSchema,
  webPush: webPushSchema,
  emailProvider: emailProviderSchema.optional(),
  emailTemplates: z.array(emailTemplateSchema).default([]),
  pages: z.array(pageSchema).optional(),
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
  Partial<
    Pick<
      TenantFile,
      | 'customClaims'
      | 'emailTemplates'
      | 'guardianFactors'
      | 'guardianPolicies'
      | 'pages'
      | 'prompts'
      | 'webPush'
    >
  > & {
    [section: string]: unknown;
  };
