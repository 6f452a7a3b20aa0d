// The schema of the tenant file (config/tenant.yaml), in the format of the hosted service's deploy tool, and of the
// records that it becomes in the store. Objects are loose: unknown members are stored, exported again, and named in a
// warning.

import { z } from 'zod';
import { canonicalDomain } from '../base/email.ts';
import { clientGrantSchema, managementApiSchema, resourceServerSchema } from '../clients/apis.ts';
import { clientSchema } from '../clients/clients.ts';
import { connectionSchema, type databaseOptionsSchema, databaseSchema } from '../connections/connections.ts';
import { customClaimsSchema } from '../users/custom-claims.ts';
import {
  guardianFactorsSchema,
  guardianFactorTemplatesSchema,
  guardianPoliciesSchema,
  phoneMessageTypesSchema,
  webPushSchema,
} from '../users/guardian.ts';
import { organizationGrantSchema } from '../users/organization-grants.ts';
import { roleSchema } from '../users/roles.ts';
import { PROFILE_CLAIMS, type ProfileClaim } from '../users/users.ts';
import { emailProviderSchema, emailTemplateSchema } from './delivery.ts';
import { documentSections, promptSections } from './documents.ts';
import { pageSchema } from './pages.ts';
import { attackProtectionSchema } from './protection.ts';
import { tenantSettingsSchema } from './tenant-settings.ts';
import { unmanagedSchema } from './unmanaged.ts';

export const organizationSchema = z.looseObject({
  id: z.string().optional(),
  name: z.string().min(1),
  display_name: z.string().optional(),
  branding: z.record(z.string(), z.unknown()).optional(),
  metadata: z.record(z.string(), z.unknown()).optional(),
  /** Whether strict third-party applications log its members in. */
  third_party_client_access: z.enum(['block', 'allow']).nullish(),
  discovery_domains: z
    .array(
      z.looseObject({
        domain: z
          .string()
          .min(1)
          .transform((domain) => canonicalDomain(domain) ?? domain),
        status: z.enum(['pending', 'verified']).default('pending'),
        use_for_organization_discovery: z.boolean().optional(),
      }),
    )
    .optional(),
  client_grants: z.array(organizationGrantSchema).optional(),
  /** In the tenant file, connections are named; in the store, `enabled_connections` has their ids. */
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
          // A gradient.
          z.looseObject({ type: z.string(), start: z.string().regex(/^#[0-9a-fA-F]{6}$/) }),
        ])
        .optional(),
    })
    .prefault({}),
  terms_url: z.string().optional(),
  privacy_url: z.string().optional(),
  /** In the tenant file; in the store, templates are documents. */
  templates: z.array(z.looseObject({ template: z.string(), body: z.string() })).optional(),
});

/** Returns a schema for each profile claim (OpenID Connect Core §5.1). */
function profileClaims<T>(kind: T): Record<ProfileClaim, T> {
  return Object.fromEntries(PROFILE_CLAIMS.map((claim) => [claim, kind])) as Record<ProfileClaim, T>;
}

export const developmentProfileSchema = z.object({
  ...profileClaims(z.string().exactOptional()),
  phone_number: z.string().exactOptional(),
  phone_verified: z.boolean().exactOptional(),
  address: z.record(z.string(), z.string()).exactOptional(),
});

/** A development user in the tenant file (`users`), in the named connection or the default directory. */
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
  databases: z.array(databaseSchema).default([]),
  connections: z.array(connectionSchema).default([]),
  resourceServers: z.array(resourceServerSchema).default([]),
  clientGrants: z.array(clientGrantSchema).default([]),
  organizations: z.array(organizationSchema).default([]),
  roles: z.array(roleSchema).optional(),
  ...documentSections,
  prompts: z.looseObject(promptFields).optional(),
  guardianSettings: z.record(z.string(), z.unknown()).optional(),
  managementApi: managementApiSchema.optional(),
  users: z.array(developmentUserSchema).default([]),
  /** An extension of the hosted format: claims that the tenant declares. */
  customClaims: customClaimsSchema.optional(),
  guardianFactors: guardianFactorsSchema,
  guardianFactorTemplates: guardianFactorTemplatesSchema,
  guardianPolicies: guardianPoliciesSchema,
  guardianPhoneFactorMessageTypes: phoneMessageTypesSchema.optional(),
  webPush: webPushSchema,
  emailProvider: emailProviderSchema.optional(),
  emailTemplates: z.array(emailTemplateSchema).default([]),
  pages: z.array(pageSchema).optional(),
  attackProtection: attackProtectionSchema.prefault({}),
  /** An extension of the hosted format, which the deploy tool's configuration is read into. */
  unmanaged: unmanagedSchema.optional(),
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
  | 'vendor_host'
  | 'vendor_channel'
  | 'tenant'
  | 'branding'
  | 'attackProtection'
  | 'customClaims'
  | 'emailTemplates'
  | 'guardianFactors'
  | 'guardianPolicies'
  | 'managementApi'
  | 'pages'
  | 'prompts'
  | 'webPush'
> & {
  [section: string]: unknown;
};
