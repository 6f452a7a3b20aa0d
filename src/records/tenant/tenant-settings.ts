// The section `tenant` of the tenant file.
import { z } from 'zod';
import { tenantSessionsSchema } from '../clients/anonymous.ts';
import { SECURITY_MODES } from '../clients/third-parties.ts';
import { tenantLogoutSchema } from '../connections/upstream.ts';
import { CLASS_MEANINGS } from '../users/authentication-classes.ts';

const hours = z.number().positive();

/** Flags with a meaning here; others are only stored. */
export const READ_FLAGS: readonly string[] = [
  'enable_dynamic_client_registration',
  'enable_public_signup_user_exists_error',
  'keep_sessions_on_password_reset',
  'mfa_for_passwordless',
  'require_dpop_nonce',
  'require_pushed_authorization_requests',
  // An extension of the hosted settings: OpenID Connect Session Management 1.0.
  'session_management',
  'standard_claims',
];

const flagsSchema = z.record(z.string(), z.unknown()).superRefine((flags, context) => {
  for (const name of READ_FLAGS) {
    if (flags[name] === undefined || typeof flags[name] === 'boolean') continue;
    context.addIssue({ code: 'custom', path: [name], message: 'must be true or false' });
  }
});

/**
 * Lowest number of characters of a user code, for each character set: about 2^30 codes, so that guessing can be
 * limited.
 */
const MIN_CODE_LENGTH = { base20: 7, digits: 9 };

const deviceFlowSchema = z
  .looseObject({
    charset: z.enum(['base20', 'digits']).default('base20'),
    /** `*` stands for a character of the code; hyphens and spaces are literal. */
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
  .refine(({ charset, mask }) => mask.split('*').length > MIN_CODE_LENGTH[charset], {
    path: ['mask'],
    message: 'has too few characters: a code must have at least 7 letters, or 9 digits (RFC 8628 §6.1)',
  });

/** The format of user codes. */
export type DeviceFlowSettings = z.output<typeof deviceFlowSchema>;

const accountPageSchema = z.strictObject({
  enabled: z.boolean().default(true),
  /** The client of logins that start at the page itself. */
  client_id: z.string().optional(),
  /** Whether users may delete their account. */
  allow_deletion: z.boolean().default(false),
});

/** Days without use after which an application that registered itself is forgotten. */
export const UNUSED_DAYS = { usual: 30, most: 365 };

const registrationSchema = z.strictObject({
  /** Whether a registration needs a token for the Management API with `create:clients` (RFC 7591 §3, initial access token). */
  requires_token: z.boolean().optional(),
  /** After how many days without use an application that registered itself is forgotten; 30 by default. */
  unused_days: z.number().int().min(1).max(UNUSED_DAYS.most).optional(),
});

/** A host as URLs have it, or all below one. */
const hostEntry = z
  .string()
  .max(255)
  .regex(/^(?:\*\.)?[a-z\d_-]+(?:\.[a-z\d_-]+)*$/, 'must be a host name in lower case, or `*.` and one');

const documentsSchema = z.strictObject({
  /** The hosts whose documents are read; all others are not. Without it all are that are not denied. */
  allowed_hosts: z.array(hostEntry).max(1000).nullish(),
  denied_hosts: z.array(hostEntry).max(1000).nullish(),
});

export const sessionCookieSchema = z.looseObject({
  mode: z.enum(['persistent', 'non-persistent']).nullish(),
});

const settingsSchema = z.looseObject({
  friendly_name: z.string().default('Gatehouse'),
  picture_url: z.string().optional(),
  support_email: z.string().optional(),
  support_url: z.string().optional(),
  allowed_logout_urls: z.array(z.string()).default([]),
  /** Default: all languages that there are. */
  enabled_locales: z.array(z.string()).min(1).optional(),
  /** An extension of the hosted settings: whether pages have a menu of these languages. */
  language_menu: z.boolean().optional(),
  /** In hours. */
  session_lifetime: hours.default(168),
  /** In hours. */
  idle_session_lifetime: hours.default(72),
  /** Whether the cookie of a session ends with the browser (`non-persistent`), or as late as the session (the default). */
  session_cookie: sessionCookieSchema.nullish(),
  default_directory: z.string().optional(),
  /** Where a login begins that no application begins. */
  default_redirection_uri: z.string().optional(),
  default_audience: z.string().optional(),
  /** Whether requests may name an organization instead of giving its id, and tokens have the name. */
  allow_organization_name_in_authentication_api: z.boolean().optional(),
  acr_values_supported: z.array(z.string().max(2048)).max(1000).nullish(),
  /** An extension: what classes (`acr`) of the tenant's own mean. @see AuthenticationClasses */
  acr_value_meanings: z.record(z.string(), z.enum(CLASS_MEANINGS)).optional(),
  /**
   * An extension of the hosted settings: whether a new user from an upstream provider is offered to link to an
   * account with the same address.
   */
  account_linking: z.enum(['never', 'suggest']).default('never'),
  /** An extension of the hosted settings: the page at `/account`, where users manage their own account. */
  account_page: accountPageSchema.prefault({}),
  oidc_logout: tenantLogoutSchema.optional(),
  /** Whether `/oauth/par` exists (RFC 9126). Default: true. */
  pushed_authorization_requests_supported: z.boolean().optional(),
  // docs/understand/decisions/tokens.md#an-access-token-is-for-one-api
  /**
   * What `resource` (RFC 8707) means: nothing (`audience`), or the API of a request without `audience` (`compatibility`). Without
   * this setting it means the same as `audience`.
   */
  resource_parameter_profile: z.enum(['audience', 'compatibility']).optional(),
  /** The `third_party_security_mode` of applications that register themselves; `strict` by default. */
  dynamic_client_registration_security_mode: z.enum(SECURITY_MODES).optional(),
  /** An extension of the hosted settings: who may register, and how long what is registered stays. */
  dynamic_client_registration: registrationSchema.nullish(),
  /** Whether an application may be described by a document at its client_id, without being registered. */
  client_id_metadata_document_supported: z.boolean().nullish(),
  /** An extension of the hosted settings: whose documents. */
  client_id_metadata_documents: documentsSchema.nullish(),
  device_flow: deviceFlowSchema.prefault({}),
  sessions: tenantSessionsSchema.nullish(),
  /** An extension of the hosted settings: how long log events are kept. */
  log_retention_days: z.number().int().min(1).max(3650).nullish(),
  flags: flagsSchema.default({}),
  /** Whether discovery has endpoints at `mtls.` of the custom domain (RFC 8705 §5). */
  mtls: z.looseObject({ enable_endpoint_aliases: z.boolean().default(false) }).nullish(),
});

/** Settings for which an empty text means none, as tools and exports of the hosted service write it. */
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
