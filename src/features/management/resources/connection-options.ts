// The options of connections as the API shows them: without secrets, and with the members that apply though they were not
// set. Tools compare those with what they would set; a missing one would be a change in each of their plans.
import type { Connection } from '../../../records/collections.ts';
import { DATABASE } from '../../../records/connections.ts';
import { isObject } from '../section.ts';
import { OLDER_POLICY } from './database-attributes.ts';

/** What holds for a database that does not say otherwise. `mfa` and `strategy_version` mean nothing here. */
const DATABASE_DEFAULTS = {
  // The deploy tool sets this option on each database without it.
  disable_self_service_change_password: false,
  mfa: { active: true, return_enroll_settings: true },
  strategy_version: 2,
  authentication_methods: {
    password: { enabled: true, api_behavior: 'required', signup_behavior: 'allow' },
    passkey: { enabled: false },
    email_otp: { enabled: false },
    phone_otp: { enabled: false },
  },
  passkey_options: {
    challenge_ui: 'both',
    progressive_enrollment_enabled: true,
    local_enrollment_enabled: true,
  },
};

const OPENID_DEFAULTS = {
  schema_version: 'oidc-V4',
  attribute_map: { mapping_mode: 'bind_all' },
  connection_settings: { pkce: 'auto' },
};

/** By strategy. */
const DEFAULTS: Readonly<Record<string, object>> = {
  [DATABASE]: DATABASE_DEFAULTS,
  oidc: OPENID_DEFAULTS,
  okta: { ...OPENID_DEFAULTS, attribute_map: { mapping_mode: 'basic_profile' } },
  // Its logins always ask for these.
  'google-apps': { email: true, profile: true, scope: ['email', 'profile'], handle_login_from_social: true },
  salesforce: { scope: [] },
  'salesforce-community': { scope: [] },
  'salesforce-sandbox': { scope: [] },
  waad: { waad_common_endpoint: false },
};

/**
 * Returns the options of a connection. Empty options get a member, because tools take options without members for
 * options that they may not read.
 */
export function optionsView({ strategy, options }: Pick<Connection, 'strategy' | 'options'>): object {
  const shown = strategy === DATABASE ? databaseOptions(options) : options;
  const complete = completed(DEFAULTS[strategy] ?? {}, shown);
  return Object.keys(complete).length === 0 ? { disable_signup: false } : complete;
}

/** Without the secrets of scripts, and without the older policy of passwords where the newer one replaces it. */
function databaseOptions(options: Connection['options']): object {
  const older: readonly string[] = options.password_options == null ? [] : OLDER_POLICY;
  return Object.fromEntries(
    Object.entries(options).filter(([name]) => name !== 'configuration' && !older.includes(name)),
  );
}

/** Returns an object with the defaults of what it lacks, at any depth. What is null stays null. */
function completed(defaults: object, given: object): object {
  const members = Object.entries(given).map(([name, value]) => {
    const byDefault = (defaults as Readonly<Record<string, unknown>>)[name];
    return [name, isObject(byDefault) && isObject(value) ? completed(byDefault, value) : value];
  });
  return { ...defaults, ...Object.fromEntries(members) };
}
