// `/tenants/settings`, `/branding` and `/prompts`: the tenant's settings.
import { z } from 'zod';
import { brandingSchema } from '../../../../records/tenant/tenant.ts';
import { sessionCookieSchema, tenantSettingsSchema } from '../../../../records/tenant/tenant-settings.ts';
import { CLASS_MEANINGS } from '../../../../records/users/authentication-classes.ts';
import { LANGUAGES } from '../../../../tenant/languages.ts';
import { type Call, callsWith, ok } from '../../call.ts';
import { apiError } from '../../management-errors.ts';
import { fieldsQuery, selectFields } from '../../management-fields.ts';
import { deeplyMerged, type SectionDependencies, section, settingsCalls } from '../../section.ts';
import { urlList } from '../../url-lists.ts';

const call = callsWith<SectionDependencies>();

const object = z.record(z.string(), z.unknown());
const texts = z.array(z.string().max(2048)).max(1000);
const hours = z.number().positive();
const minutes = z.number().int().positive();
const page = z.looseObject({ enabled: z.boolean().optional(), html: z.string().max(100_000).optional() });

/** The members of the settings that a caller can set. */
const settings = z.strictObject(
  Object.fromEntries(
    Object.entries({
      friendly_name: z.string().max(255),
      picture_url: z.string().max(2048),
      support_email: z.string().max(255),
      support_url: z.string().max(2048),
      allowed_logout_urls: urlList('url', { isTenants: true }),
      default_directory: z.string().max(255),
      default_audience: z.string().max(600),
      log_retention_days: z.number().int().min(1).max(3650),
      account_linking: z.enum(['never', 'suggest']),
      account_page: object,
      default_redirection_uri: z.string().max(2048),
      session_lifetime: hours,
      session_lifetime_in_minutes: minutes,
      idle_session_lifetime: hours,
      idle_session_lifetime_in_minutes: minutes,
      ephemeral_session_lifetime: hours,
      ephemeral_session_lifetime_in_minutes: minutes,
      idle_ephemeral_session_lifetime: hours,
      idle_ephemeral_session_lifetime_in_minutes: minutes,
      session_cookie: sessionCookieSchema,
      sessions: object,
      oidc_logout: object,
      enabled_locales: texts,
      language_menu: z.boolean(),
      sandbox_version: z.string().max(16),
      legacy_sandbox_version: z.string().max(16),
      change_password: page,
      guardian_mfa_page: page,
      error_page: object,
      device_flow: object,
      flags: object,
      customize_mfa_in_postlogin_action: z.boolean(),
      allow_organization_name_in_authentication_api: z.boolean(),
      acr_values_supported: texts,
      acr_value_meanings: z.record(z.string(), z.enum(CLASS_MEANINGS)),
      mtls: object,
      pushed_authorization_requests_supported: z.boolean(),
      authorization_response_iss_parameter_supported: z.boolean(),
      skip_non_verifiable_callback_uri_confirmation_prompt: z.boolean(),
      resource_parameter_profile: z.enum(['audience', 'compatibility']),
      client_id_metadata_document_supported: z.boolean(),
      client_id_metadata_documents: object,
      enable_ai_guide: z.boolean(),
      phone_consolidated_experience: z.boolean(),
      dynamic_client_registration_security_mode: z.enum(['strict', 'permissive']),
      dynamic_client_registration: object,
      country_codes: object,
      security_headers: object,
      default_token_quota: object,
      // docs/understand/decisions/management-api.md#what-has-no-effect-is-taken-where-it-lowers-nobodys-security
      universal_login: object,
    }).map(([name, schema]) => [name, schema.nullable().optional()]),
  ),
);

/** Lifetimes can be set in hours or in minutes. They are stored in hours. */
const LIFETIMES = [
  'session_lifetime',
  'idle_session_lifetime',
  'ephemeral_session_lifetime',
  'idle_ephemeral_session_lifetime',
];

function inHours(body: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const changed: Record<string, unknown> = { ...body };
  for (const name of LIFETIMES) {
    const { [`${name}_in_minutes`]: inMinutes } = changed;
    delete changed[`${name}_in_minutes`];
    if (typeof inMinutes !== 'number') continue;
    if (typeof changed[name] === 'number') {
      throw apiError(400, `Cannot specify both ${name} and ${name}_in_minutes`, 'invalid_body');
    }
    changed[name] = inMinutes / 60;
  }
  return changed;
}

/** Flags that are always so here, if the tenant does not have them, as at the hosted service. */
const FLAGS = {
  allow_changing_enable_sso: false,
  disable_clickjack_protection_headers: false,
  disable_impersonation: true,
  enable_sso: true,
  revoke_refresh_token_grant: false,
  universal_login: true,
};

/** Members of every response, with their defaults. A tool takes `error_page` for one that was set. */
const DEFAULTS = {
  allowed_logout_urls: [],
  change_password: { enabled: false, html: '' },
  guardian_mfa_page: { enabled: false, html: '' },
  sandbox_version: '22',
  sandbox_versions_available: ['22'],
  default_directory: '',
  default_audience: '',
  enabled_locales: LANGUAGES,
};

/** Members that are merged; all others are replaced. */
const MERGED_MEMBERS = ['flags', 'change_password', 'guardian_mfa_page', 'error_page'];

function tenantSettingsCalls(): Call<SectionDependencies>[] {
  const part = section('tenant', tenantSettingsSchema);
  const view = (value: { readonly flags?: object | undefined } = {}) => ({
    ...DEFAULTS,
    ...value,
    flags: { ...FLAGS, ...value.flags },
  });
  return [
    call({
      method: 'GET',
      path: '/tenants/settings',
      scopes: ['read:tenant_settings'],
      summary: 'Get tenant settings',
      query: z.strictObject(fieldsQuery),
      handle: async (deps, { query }) => ok(selectFields(view(await part.read(deps)), query)),
    }),
    call({
      method: 'PATCH',
      path: '/tenants/settings',
      scopes: ['update:tenant_settings'],
      summary: 'Update tenant settings',
      body: settings,
      handle: async (deps, { body }) => {
        const changes = inHours(body);
        const { before, after } = await part.change(deps, (current) => {
          const stored: Readonly<Record<string, unknown>> = current ?? {};
          const mergedMembers = MERGED_MEMBERS.filter((name) => name in changes || name in stored).map(
            (name) => [name, changes[name] === null ? null : deeplyMerged(stored[name], changes[name] ?? {})],
          );
          return deeplyMerged({}, { ...stored, ...changes, ...Object.fromEntries(mergedMembers) });
        });
        return ok(view(after), { before, after });
      },
    }),
  ];
}

const brandingBody = z.strictObject({
  colors: object.nullish(),
  logo_url: z.string().max(2048).nullish(),
  favicon_url: z.string().max(2048).nullish(),
  font: object.nullish(),
  identifiers: object.nullish(),
  terms_url: z.string().max(2048).nullish(),
  privacy_url: z.string().max(2048).nullish(),
});

const promptsSchema = z.strictObject({
  universal_login_experience: z.enum(['new', 'classic']).default('new'),
  identifier_first: z.boolean().default(false),
  webauthn_platform_first_factor: z.boolean().default(false),
});

export const tenantCalls: Call<SectionDependencies>[] = [
  ...tenantSettingsCalls(),
  ...settingsCalls(section('branding', brandingSchema), {
    path: '/branding',
    noun: 'branding',
    name: 'branding',
    body: brandingBody,
    view: (value) => value ?? {},
  }),
  ...settingsCalls(section('prompts', promptsSchema), {
    path: '/prompts',
    noun: 'prompts',
    name: 'prompt',
    body: promptsSchema.partial(),
    view: (value) => promptsSchema.parse(value ?? {}),
  }),
];
