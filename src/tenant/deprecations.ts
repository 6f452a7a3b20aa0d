// What the hosted service has given up and exports still have, with what takes its place.
import type { Finding } from './findings.ts';

type Pattern = readonly string[];

/** A member by its path (`*` is any step), or a value of it, and what takes its place. */
interface Deprecation {
  path: Pattern;
  value?: RegExp;
  instead: string;
  /** Whether it has its effect here. */
  works?: true;
}

const member = (
  path: string,
  instead: string,
  more: Pick<Deprecation, 'works' | 'value'> = {},
): Deprecation => ({
  path: path.split('.'),
  instead,
  ...more,
});

const TENANT_PAGE = 'pages, where it has a name';
const TOKEN_EXCHANGE = 'the password grant, refresh tokens and token exchange';

const DEPRECATED: readonly Deprecation[] = [
  member('rules', 'actions of post-login', { works: true }),
  member('rulesConfigs', 'the secrets of actions', { works: true }),
  member('hooks', 'actions of the same trigger'),
  member('migrations', 'nothing, the deploy tool ignores it'),
  member('guardianFactorProviders', 'phoneProviders'),
  member('guardianFactorTemplates', 'phoneTemplates', { works: true }),
  member('guardianPhoneFactorSelectedProvider', 'phoneProviders'),
  member('tenant.change_password', TENANT_PAGE),
  member('tenant.guardian_mfa_page', TENANT_PAGE),
  member('tenant.error_page', TENANT_PAGE),
  member('tenant.universal_login', 'branding.colors'),
  member('tenant.sandbox_version', 'nothing, all scripts run in the same runtime'),
  member('tenant.sandbox_versions_available', 'nothing, all scripts run in the same runtime'),
  ...[
    'enable_legacy_logs_search_v2',
    'enable_legacy_profile',
    'allow_legacy_delegation_grant_types',
    'allow_legacy_ro_grant_types',
    'allow_legacy_tokeninfo_endpoint',
    'enable_pipeline2',
    'enable_idtoken_api2',
    'enable_adfs_waad_email_verification',
    'enable_beta_dashboard',
    'use_beta_dashboard',
    'disable_impersonation',
    'enable_sso',
    'allow_changing_enable_sso',
    'remove_stale_idp_attributes',
  ].map((name) => member(`tenant.flags.${name}`, 'nothing')),
  ...['universal_login', 'new_universal_login_experience_enabled'].map((name) =>
    member(`tenant.flags.${name}`, 'prompts.universal_login_experience'),
  ),
  member('clients.*.cross_origin_auth', 'cross_origin_authentication'),
  member('clients.*.allowed_clients', 'token exchange'),
  member('clients.*.client_aliases', 'nothing'),
  member('clients.*.form_template', 'custom_login_page'),
  member('clients.*.sso', 'nothing, sessions serve all applications'),
  member('clients.*.jwt_configuration.secret_encoded', 'nothing, secrets are texts'),
  member('clients.*.grant_types.*', TOKEN_EXCHANGE, { value: /\/oauth\/legacy\/grant-type\// }),
  member('databases.*.options.mfa', 'guardianFactors and guardianPolicies'),
  member('databases.*.options.strategy_version', 'nothing'),
  member('emailTemplates.*.template', 'reset_email', { value: /^(?:change_password|password_reset)$/ }),
];

/** The ends of sentences about one. */
const ENDS = {
  works: 'is deprecated at the hosted service; it works here',
  kept: 'is deprecated at the hosted service, and has no effect here',
};

/** Returns a finding for each deprecated member of a document. */
export function deprecations(document: unknown): Finding[] {
  return DEPRECATED.flatMap((deprecation) =>
    membersAt(document, deprecation.path, '').flatMap(({ at, value }) => {
      if (isNothing(value) || (deprecation.value !== undefined && !deprecation.value.test(String(value))))
        return [];
      const { instead, works = false } = deprecation;
      const end = works ? ENDS.works : ENDS.kept;
      const named = deprecation.value === undefined ? '' : `${String(value)} `;
      const place = at.replaceAll(/\[\d+\]/g, '[]');
      return [
        {
          rank: 'deprecated' as const,
          at,
          says: `${named}${end}; what takes its place: ${instead}`,
          several: works
            ? 'members are deprecated at the hosted service; they work here'
            : 'members are deprecated at the hosted service, and have no effect here',
          item: `${named === '' ? place : named.trim()} (instead: ${instead})`,
        },
      ];
    }),
  );
}

const isNothing = (value: unknown): boolean =>
  value === undefined ||
  value === null ||
  value === false ||
  (typeof value === 'object' && Object.keys(value).length === 0);

/** Returns the members of a document at a path. */
function membersAt(
  document: unknown,
  [step, ...rest]: Pattern,
  at: string,
): { at: string; value: unknown }[] {
  if (step === undefined) return [{ at, value: document }];
  if (typeof document !== 'object' || document === null) return [];
  if (step === '*')
    return Array.isArray(document)
      ? document.flatMap((item: unknown, index) => membersAt(item, rest, `${at}[${index}]`))
      : [];
  if (!Object.hasOwn(document, step)) return [];
  return membersAt(Reflect.get(document, step), rest, at === '' ? step : `${at}.${step}`);
}
