// Connections in the tenant file: databases and all others.
import { z } from 'zod';
import { customScriptsSchema, missingScripts } from './custom-scripts.ts';
import { attributesSchema } from './database-attributes.ts';
import { ADDRESS_KINDS, type AddressKind } from './identities.ts';
import { ldapOptionsSchema } from './ldap.ts';
import {
  adfsOptionsSchema,
  appleOptionsSchema,
  googleAppsOptionsSchema,
  googleOptionsSchema,
  missingGoogleAppsOptions,
  missingOpenIdOptions,
  missingWaadOptions,
  oidcOptionsSchema,
  oktaOptionsSchema,
  waadOptionsSchema,
  waadTrustsAnybody,
} from './openid.ts';
import { passwordOptionsSchema } from './password-options.ts';
import { domainAliases, emailOptionsSchema, smsOptionsSchema } from './passwordless.ts';
import { missingSamlpOptions, samlpOptionsSchema } from './samlp-connection.ts';
import { SOCIAL_USER_IDS, type SocialStrategyName, socialOptionsSchema } from './social.ts';
import { missingOAuth2Options, rootAttributes, storedOAuth2OptionsSchema } from './upstream.ts';
import {
  ofAdfs,
  ofAssertion,
  ofDatabase,
  ofEntry,
  ofScript,
  permanent,
  type UserIdentifier,
} from './user-identifiers.ts';

const passwordPolicySchema = z.enum(['none', 'low', 'fair', 'good', 'excellent']);

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
  /** Replaces the password members above, which then have no effect. */
  password_options: passwordOptionsSchema.nullish(),
  requires_username: z.boolean().default(false),
  validation: z
    .looseObject({
      username: z
        .looseObject({
          min: z.number().int().min(1).max(128).default(1),
          max: z.number().int().min(1).max(128).default(15),
        })
        .refine(({ min, max }) => min <= max, { path: ['min'], message: 'must not be above max' })
        .optional(),
    })
    .optional(),
  /** Replaces `requires_username` and `validation`. */
  attributes: attributesSchema.nullish(),
  /** The order in which a name that could be of several kinds is looked up. */
  precedence: z.array(z.enum(ADDRESS_KINDS)).max(3).nullish(),
  disable_signup: z.boolean().default(false),
  /** Whether users cannot request an e-mail for setting a new password. */
  disable_self_service_change_password: z.boolean().nullish(),
  brute_force_protection: z.boolean().default(true),
  domain_aliases: domainAliases,
  /** Whether users are, or were, kept in an external database, which `customScripts` access. */
  enabledDatabaseCustomization: z.boolean().optional(),
  /** Whether users are moved here at their first login; otherwise they stay in the external database. */
  import_mode: z.boolean().optional(),
  customScripts: customScriptsSchema.nullish(),
  /** Whether the scripts get a context argument before the callback. */
  enable_script_context: z.boolean().optional(),
  /** For users in an external database: when the attributes that it returns replace the stored ones. */
  set_user_root_attributes: rootAttributes.nullish(),
  /** Members of the external profile that are not stored. */
  non_persistent_attrs: z.array(z.string()).max(1000).nullish(),
  /** The global `configuration` of the scripts. */
  configuration: z.record(z.string(), z.unknown()).nullish(),
  authentication_methods: z
    .looseObject({
      password: z
        .looseObject({
          enabled: z.boolean().optional(),
          /** Whether `POST /dbconnections/signup` and the Management API can create users without a password. */
          api_behavior: z.enum(['required', 'optional']).optional(),
          /** Whether the hosted page asks for a password at sign-up. */
          signup_behavior: z.enum(['allow', 'block']).optional(),
        })
        .nullish(),
      passkey: z.looseObject({ enabled: z.boolean().default(false) }).nullish(),
      /** A code by e-mail instead of the password. */
      email_otp: z.looseObject({ enabled: z.boolean().default(false) }).nullish(),
      /** A code by SMS instead of the password, if users log in with phone numbers. */
      phone_otp: z.looseObject({ enabled: z.boolean().default(false) }).nullish(),
    })
    .nullish(),
  passkey_options: z
    .looseObject({
      /**
       * Whether the login page has a button for passkeys, browsers offer them at the identifier field (autofill), or
       * both.
       */
      challenge_ui: z.enum(['both', 'autofill', 'button']).optional(),
      /** Whether users without a passkey are offered to create one after a login with a password. */
      progressive_enrollment_enabled: z.boolean().optional(),
      local_enrollment_enabled: z.boolean().optional(),
    })
    .nullish(),
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
  // docs/understand/decisions/connections.md#is_domain_connection-enables-a-connection-for-all-third-party-applications
  is_domain_connection: z.boolean().default(false),
  /** For connections to an external provider: whether the login page has a button for it. */
  show_as_button: z.boolean().optional(),
};

/** The strategy of the connections in the tenant file's `databases`. */
export const DATABASE = 'auth0';

export const databaseSchema = z.looseObject({
  ...connectionFields,
  strategy: z.literal(DATABASE).default(DATABASE),
  options: databaseOptionsSchema.prefault({}),
});

/**
 * A database in a request. What is stored is not refused for what newer rules demand, and neither is a tenant file, because
 * the hosted service keeps such databases; nobody can sign up there.
 */
export const writtenDatabaseSchema = databaseSchema.superRefine(({ options }, context) => {
  for (const name of missingScripts(options)) {
    context.addIssue({
      code: 'custom',
      path: ['options', 'customScripts', name],
      message: 'is needed where enabledDatabaseCustomization is true',
    });
  }
});

/** The properties of a strategy that the tenant file and the store need; the rest is in the strategy's own folder. */
export interface StrategyRecord {
  options: z.ZodType;
  /** Returns the options that are missing: the connection is stored without them, but nobody can log in. */
  missingOptions?(options: Readonly<Record<string, unknown>>): string[];
  /**
   * Returns what the users of a connection are identified by, and whether it may be given to another person
   * (docs/do/connections/README.md has a row for each strategy).
   */
  identifier(options: Readonly<Record<string, unknown>>): UserIdentifier;
  /** Whether addresses count as verified that the administrators of any organization write. Default: no. */
  trustsAnybody?(options: Readonly<Record<string, unknown>>): boolean;
  /** Whether its connections belong in the tenant file's `databases`. */
  isDatabase: boolean;
  unique: readonly AddressKind[];
  /** The kind of address that a login proves to be the user's. */
  proves?: AddressKind;
  /** Whether users log in at an external provider. */
  isUpstream?: true;
  /** Whether users type their password at this server, so that the password grants can use its connections. */
  takesPasswords?: true;
  /** Whether, by default, the provider's issuer is `https://<domain>`, from the option `domain`. */
  signsAsDomain?: true;
}

/** Users of an external provider are identified only by the provider's id for them. */
const upstream = { isDatabase: false, unique: [], isUpstream: true } as const;

const social = Object.fromEntries(
  Object.entries(SOCIAL_USER_IDS).map(([name, id]): [string, StrategyRecord] => [
    name,
    { ...upstream, options: socialOptionsSchema, identifier: permanent(id) },
  ]),
) as Record<SocialStrategyName, StrategyRecord>;

/** The built-in strategies by name. A tenant file may contain connections of other strategies; they are stored. */
export const STRATEGIES = {
  [DATABASE]: {
    options: databaseOptionsSchema,
    isDatabase: true,
    unique: ADDRESS_KINDS,
    takesPasswords: true,
    identifier: ofDatabase,
  },
  email: {
    options: emailOptionsSchema,
    isDatabase: false,
    unique: ['email'],
    proves: 'email',
    identifier: () => ({ is: 'the e-mail address', isReassigned: 'proof' }),
  },
  sms: {
    options: smsOptionsSchema,
    isDatabase: false,
    unique: ['phone_number'],
    proves: 'phone_number',
    identifier: () => ({ is: 'the phone number', isReassigned: 'proof' }),
  },
  oauth2: {
    ...upstream,
    options: storedOAuth2OptionsSchema,
    missingOptions: missingOAuth2Options,
    identifier: ofScript,
  },
  oidc: {
    ...upstream,
    options: oidcOptionsSchema,
    missingOptions: (options) => missingOpenIdOptions(options),
    identifier: permanent('sub'),
  },
  okta: {
    ...upstream,
    options: oktaOptionsSchema,
    missingOptions: (options) => missingOpenIdOptions(options, ['domain']),
    signsAsDomain: true,
    identifier: permanent('sub'),
  },
  waad: {
    ...upstream,
    options: waadOptionsSchema,
    missingOptions: missingWaadOptions,
    trustsAnybody: waadTrustsAnybody,
    identifier: permanent('sub or oid'),
  },
  adfs: {
    ...upstream,
    options: adfsOptionsSchema,
    identifier: ofAdfs,
  },
  'google-oauth2': { ...upstream, options: googleOptionsSchema, identifier: permanent('sub') },
  'google-apps': {
    ...upstream,
    options: googleAppsOptionsSchema,
    missingOptions: missingGoogleAppsOptions,
    identifier: permanent("the verified address, with Google's id of the account"),
  },
  apple: { ...upstream, options: appleOptionsSchema, identifier: permanent('sub') },
  ...social,
  ad: { ...upstream, options: ldapOptionsSchema, takesPasswords: true, identifier: ofEntry },
  'auth0-adldap': { ...upstream, options: ldapOptionsSchema, takesPasswords: true, identifier: ofEntry },
  samlp: {
    ...upstream,
    options: samlpOptionsSchema,
    missingOptions: missingSamlpOptions,
    identifier: ofAssertion,
  },
  pingfederate: {
    ...upstream,
    options: samlpOptionsSchema,
    missingOptions: missingSamlpOptions,
    identifier: ofAssertion,
  },
} satisfies Readonly<Record<string, StrategyRecord>>;

export type StrategyName = keyof typeof STRATEGIES;

/** Returns the record of a strategy; undefined if it is not built in. */
export function strategyRecord(name: string): StrategyRecord | undefined {
  return Object.hasOwn(STRATEGIES, name) ? STRATEGIES[name as StrategyName] : undefined;
}

/** A connection other than a database. Its options are stored as written, and checked by its strategy's schema. */
export const connectionSchema = z
  .looseObject({
    ...connectionFields,
    strategy: z.string().min(1),
    options: z.record(z.string(), z.unknown()).default({}),
  })
  .superRefine(({ strategy, options }, context) => {
    const known = strategyRecord(strategy);
    // A database is refused elsewhere as a whole, because it belongs in its own section.
    const faults = known?.isDatabase === false ? known.options.safeParse(options).error?.issues : undefined;
    for (const { path, message } of faults ?? []) {
      context.addIssue({ code: 'custom', path: ['options', ...path], message });
    }
  });

const purpose = z.looseObject({ active: z.boolean().optional() }).nullish().catch(undefined);

/**
 * Returns what a connection is for: logins, unless `authentication.active` is false; accounts that users connect, if
 * `connected_accounts.active` is true.
 */
export function connectionPurposes(connection: object): { logsIn: boolean; connectsAccounts: boolean } {
  const { authentication, connected_accounts } = connection as Record<string, unknown>;
  return {
    logsIn: purpose.parse(authentication)?.active !== false,
    connectsAccounts: purpose.parse(connected_accounts)?.active === true,
  };
}
