// The settings of the tenant itself in the tenant file: `tenant`.
import { z } from 'zod';
import { tenantSessionsSchema } from './anonymous.ts';
import { tenantLogoutSchema } from './logout.ts';

const hours = z.number().positive();

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

/** The section `tenant`. */
export const tenantSettingsSchema = z.preprocess(
  (value) =>
    typeof value === 'object' && value !== null
      ? Object.fromEntries(
          Object.entries(value).filter(([name, member]) => member !== '' || !CHOICES.includes(name)),
        )
      : value,
  settingsSchema,
);
