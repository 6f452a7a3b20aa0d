// What becomes of the tenant's settings, its pages, messages and protection.
import { READ_FLAGS } from '../../records/tenant/tenant-settings.ts';
import { isSpoken, NO_VOICE } from '../../records/users/guardian.ts';
import { absent, differently, type Item, inForce, isAsked, type Rules } from './verdict.ts';

const isTrue = (value: unknown) => value === true;
const isFalse = (value: unknown) => value === false;
const isEnabled = (value: unknown) => (value as Item | null)?.enabled === true;

/** Flags that are read here, those of the dashboard, and those that say what is always so here. */
const SILENT_FLAGS = [
  ...READ_FLAGS,
  ...['enable_apis_section', 'enable_pipeline2', 'disable_impersonation', 'universal_login'],
  ...[
    'allow_changing_enable_sso',
    'dashboard_log_streams_next',
    'dashboard_insights_view',
    'dashboard_ui_next',
    'dashboard_security_center',
    'manage_new_roles',
    'genai_trial',
  ],
  ...[
    'new_universal_login_experience_enabled',
    'custom_domains_provisioning',
    'cannot_change_enforce_client_authentication_on_passwordless_start',
  ],
  'disable_fields_map_fix',
  'force_default_audience',
];

/** Sections whose resources are kept for tools. */
const stored = (says: string) => absent(says, isAsked);

export const tenantRules: Rules = {
  ...Object.fromEntries(SILENT_FLAGS.map((name) => [`tenant.flags.${name}`, inForce])),
  'tenant.flags.disable_clickjack_protection_headers': absent(
    'pages still refuse to be shown in frames of others',
    isTrue,
  ),
  'tenant.flags.revoke_refresh_token_grant': absent(
    'revoking a refresh token does not revoke the others of that user and application',
    isTrue,
  ),
  'tenant.flags.no_disclose_enterprise_connections': absent(
    '/client/<client_id>.js still names the enterprise connections of an application, with their domains',
    isTrue,
  ),
  'tenant.flags.enforce_client_authentication_on_passwordless_start': differently(
    '/passwordless/start always refuses a confidential application without its authentication',
    'clients-keys.md#passwordlessverify-authenticates-confidential-applications',
    isFalse,
  ),
  'tenant.flags.enable_idtoken_api2': absent('the Management API does not accept ID tokens', isTrue),
  'tenant.flags.change_pwd_flow_v1': absent(
    'a new password cannot be sent before its mail: users enter it on the page behind the link',
    isTrue,
  ),
  'tenant.flags.trust_azure_adfs_email_verified_connection_property': absent(
    'addresses from Azure AD and AD FS are verified where should_trust_email_verified_connection of the connection says so',
    isFalse,
  ),
  'tenant.flags.use_scope_descriptions_for_consent': differently(
    'the consent page shows the descriptions of scopes, not their names grouped by what they are about',
    'authorize.md#a-consent-page-shows-the-descriptions-of-scopes',
    isFalse,
  ),
  'tenant.flags.enable_sso': absent(
    'users with a session are not asked to confirm a login: single sign-on is on for all applications',
    isFalse,
  ),
  'tenant.flags.remove_alg_from_jwks': absent('keys at /.well-known/jwks.json name their algorithm', isTrue),
  'tenant.flags.mfa_show_factor_list_on_enrollment': absent(
    'users who enrol are not shown the list of factors first',
    isTrue,
  ),
  'tenant.flags.improved_signup_bot_detection_in_classic': absent('there are no bot challenges', isTrue),
  'tenant.flags.allow_magiclink_verify_without_session': differently(
    'a link that is opened in another browser asks for a confirmation there',
    'passwordless-messages.md#a-link-logs-in-without-confirmation-only-in-the-browser-that-requested-it',
    isTrue,
  ),
  'tenant.flags.include_email_in_reset_pwd_redirect': absent(
    'the address is in the URL after a reset only where the e-mail’s includeEmailInRedirect is true',
    isTrue,
  ),
  'tenant.flags.include_email_in_verify_email_redirect': absent(
    'the address is in the URL after a verification only where the e-mail’s includeEmailInRedirect is true',
    isTrue,
  ),
  'tenant.flags.enable_custom_domain_in_emails': differently(
    'mails and tickets lead to the host of BASE_URL: make it this domain',
    'management-api.md#these-settings-are-accepted-with-a-warning-that-names-them',
    isTrue,
  ),
  'tenant.flags.enable_client_connections': absent(
    'a new application is not given all connections by itself',
    isTrue,
  ),
  'tenant.flags.*': absent(
    'the flag has no meaning here: older endpoints and grants that it allows do not exist',
    isTrue,
  ),
  'tenant.change_password': absent('the customized page for a new password is not shown: ours is', isEnabled),
  'tenant.guardian_mfa_page': absent(
    'the customized page of second factors is not shown: ours is',
    isEnabled,
  ),
  'tenant.error_page': absent('errors are shown on our page, not on this one', (value) => {
    const { html, url } = (value ?? {}) as Item;
    return isAsked(html) || isAsked(url);
  }),
  'tenant.default_token_quota': absent(
    'tokens that applications get for themselves are not counted against a quota',
  ),
  ...Object.fromEntries(
    [
      'ephemeral_session_lifetime',
      'idle_ephemeral_session_lifetime',
      'ephemeral_session_lifetime_in_minutes',
      'idle_ephemeral_session_lifetime_in_minutes',
    ].map((name) => [
      `tenant.${name}`,
      absent(
        'there are no ephemeral sessions: all have the lifetimes of session_lifetime and idle_session_lifetime',
      ),
    ]),
  ),
  'tenant.session_lifetime_in_minutes': absent('only session_lifetime, in hours, is read'),
  'tenant.idle_session_lifetime_in_minutes': absent('only idle_session_lifetime, in hours, is read'),
  'tenant.session_cookie': inForce,
  'tenant.sandbox_version': differently(
    'Actions and scripts run in QuickJS, whatever version of Node.js is named',
    'actions-scripts.md#scripts-run-in-quickjs-compiled-to-webassembly-in-threads',
  ),
  ...Object.fromEntries(
    [
      ...[
        'legacy_sandbox_version',
        'sandbox_versions_available',
        'phone_consolidated_experience',
        'enable_ai_guide',
      ],
      ...[
        'customize_mfa_in_postlogin_action',
        'client_id_metadata_document_supported',
        'acr_values_supported',
        'enabled_locales',
      ],
      ...[
        'dynamic_client_registration_security_mode',
        'resource_parameter_profile',
        'sessions',
        'device_flow',
        'oidc_logout',
        'mtls',
      ],
      ...['pushed_authorization_requests_supported', 'support_email', 'support_url', 'picture_url'],
    ].map((name) => [`tenant.${name}`, inForce]),
  ),
  'tenant.security_headers': absent('our pages send their own Content-Security-Policy, not this one'),
  'tenant.sessions.oidc_logout_prompt_enabled': differently(
    'a logout without id_token_hint is confirmed by the user all the same',
    'sessions-logout.md#oidclogout-asks-for-confirmation-unless-the-request-identifies-the-session',
    isFalse,
  ),
  'tenant.authorization_response_iss_parameter_supported': differently(
    'every authorization response has iss',
    'authorize.md#every-authorization-response-has-iss',
    isFalse,
  ),
  'tenant.include_session_metadata_in_tenant_logs': absent(
    'log events do not have the metadata of sessions',
    isTrue,
  ),
  'tenant.country_codes': absent('users may give phone numbers of all countries'),
  'tenant.skip_non_verifiable_callback_uri_confirmation_prompt': absent(
    'users are not asked before they return to an application by a custom scheme or localhost',
    isFalse,
  ),
  'tenant.universal_login': differently(
    'the colours of the older login page are not used: pages follow the branding',
    'management-api.md#what-has-no-effect-is-taken-where-it-lowers-nobodys-security',
    isAsked,
  ),

  'branding.font': absent('the font of older pages is not used: set the theme’s font'),
  'branding.identifiers': absent('how identifiers are shown and completed is not changed'),
  'branding.universal_login': inForce,

  // Our pages follow WCAG whatever this says.
  'prompts.enable_ulp_wcag_compliance': inForce,
  // A misspelling in the deploy tool's examples, which the hosted service ignores, too.
  'guardianPhoneFactorMessageTypes.message-types': inForce,
  'branding.theme': absent('the theme of older pages is not used: set a theme'),
  migrations: absent(
    'older behaviours that the hosted service keeps on for a tenant do not exist here',
    (value) => Object.values((value ?? {}) as Item).includes(true),
  ),

  'prompts.universal_login_experience': differently(
    'pages of Gatehouse are shown in place of the classic ones, unless the login page is customized',
    'login-pages.md#a-customized-login-page-runs-in-gatehouses-origin',
    (value) => value === 'classic',
  ),
  'prompts.webauthn_platform_first_factor': absent(
    'users cannot log in with the device’s biometrics alone; passkeys of a database can',
    isTrue,
  ),
  'prompts.customText': inForce,
  'prompts.partials': absent('the parts of pages are not shown: use the page template'),
  'prompts.screenRenderers': absent(
    'screens are not rendered by your own code: our pages are shown',
    (value) => JSON.stringify(value).includes('advanced'),
  ),

  'emailProvider.settings': absent('headers and message settings of the provider are not set'),
  'emailProvider.credentials.*': inForce,
  'emailTemplates.includeEmailInRedirect': inForce,

  'attackProtection.breachedPasswordDetection': absent(
    'passwords are not compared with those of known breaches',
    isEnabled,
  ),
  'attackProtection.botDetection': absent('there are no bot challenges', (value) => {
    const { bot_detection_level: _, ...policies } = (value ?? {}) as Item;
    return Object.entries(policies).some(
      ([name, policy]) => name.startsWith('challenge_') && policy !== 'never',
    );
  }),
  'attackProtection.captcha': absent('no captcha is shown', (value) => {
    const { active_provider_id: active, selected } = (value ?? {}) as Item;
    return isAsked(active) || isAsked(selected);
  }),

  guardianFactorProviders: inForce,
  'guardianFactorProviders.*': inForce,
  guardianFactorTemplates: inForce,
  'guardianFactorTemplates.*': inForce,
  guardianPhoneFactorSelectedProvider: inForce,
  'guardianPhoneFactorMessageTypes.message_types': absent(NO_VOICE, isSpoken),
  phoneProviders: inForce,
  'phoneProviders.configuration.delivery_methods': absent(NO_VOICE, isSpoken),
  // What is spoken is judged where calls are asked for.
  'phoneTemplates.content.body.voice': inForce,
  phoneTemplates: inForce,

  pages: inForce,
  'pages.*': inForce,
  hooks: stored('the hook does not run: move its code into an Action'),
  rules: inForce,
  rulesConfigs: inForce,
  forms: stored('the form is not shown, and an Action that renders it fails'),
  flows: stored('the flow is not run'),
  flowVaultConnections: stored('the connection is for flows, which are not run'),
  eventStreams: stored(
    'no events are sent to this destination; log streams of the type http send those of the log',
  ),
  selfServiceProfiles: stored('companies cannot set up their connection themselves'),
  connectionProfiles: stored('connections are not made from profiles'),
  userAttributeProfiles: stored('attributes are not mapped by profiles: connections map their own'),
  rateLimitPolicies: stored('the limits of this server apply: attackProtection.rateLimits'),
  'riskAssessment.settings': absent(
    'risk is not assessed, and no factor is asked for because of it',
    isEnabled,
  ),
  'riskAssessment.new_device': inForce,
  supplementalSignals: absent(
    'signals of an edge network are not read',
    (value) => (value as Item | null)?.akamai_enabled === true,
  ),
  guardianSettings: inForce,
};

const THEME_WITHOUT = [
  ...[
    'colors.base_focus_color',
    'colors.base_hover_color',
    'colors.captcha_widget_theme',
    'colors.icons',
    'colors.read_only_background',
  ],
  ...['fonts.links_style', 'identifiers', 'widget.social_buttons_layout'],
];

/** What becomes of Actions, organizations, themes, log streams, custom domains and network lists. */
export const documentRules: Rules = {
  actions: inForce,
  'actions.runtime': differently(
    'the code runs in QuickJS, without Node.js’s own modules beyond those that are listed',
    'actions-scripts.md#scripts-run-in-quickjs-compiled-to-webassembly-in-threads',
  ),
  'actions.dependencies': differently(
    'its packages have to be installed beside the server, and are read, never executed, outside of the sandbox',
    'actions-scripts.md#packages-of-actions-are-read-never-executed-outside-of-the-sandbox',
    isAsked,
  ),
  actionModules: inForce,
  triggers: inForce,
  'triggers.*': inForce,
  tokenExchangeProfiles: inForce,

  ...Object.fromEntries(
    ['branding', 'metadata', 'is_enabled'].map((name) => [`organizations.${name}`, inForce]),
  ),
  'organizations.connections.connection_id': inForce,
  'organizations.connections.is_enabled': inForce,
  'organizations.connections.organization_connection_name': absent(
    'the connection has its usual name on the organization’s page',
  ),
  'organizations.connections.organization_access_level': absent(
    'members of the organization cannot change the connection themselves',
    (value) => isAsked(value) && value !== 'none',
  ),
  'organizations.client_grants': inForce,
  'organizations.token_quota': absent('tokens for the organization are not counted against a quota'),
  'organizations.third_party_client_access': differently(
    'third-party applications are kept from the organization unless their third_party_security_mode is permissive',
    'clients-keys.md#a-third-party-application-is-strict-unless-it-says-otherwise',
    (value) => value === 'block',
  ),
  'organizations.is_app_entitlement_active': absent('members may log in to all applications', isTrue),
  'organizations.clients': absent('members may log in to all applications'),

  themes: inForce,
  ...Object.fromEntries(
    THEME_WITHOUT.map((name) => [
      `themes.${name}`,
      absent('pages keep their own look here', (value) => isAsked(value)),
    ]),
  ),
  'themes.displayName': inForce,

  logStreams: inForce,
  'logStreams.pii_config.method': differently(
    'personal data is hashed with a key of the tenant, not with xxhash',
    'management-api.md#pii_config-of-a-log-stream-is-applied-to-what-is-sent',
    (value) => value === 'hash',
  ),
  'logStreams.isPriority': inForce,

  customDomains: inForce,
  'customDomains.tls_policy': differently(
    'your edge or TLS_CERT says which versions of TLS are spoken',
    'clients-keys.md#the-edge-in-front-of-a-custom-domain-is-identified-by-its-api-key',
    (value) => value !== undefined && value !== 'recommended',
  ),
  'customDomains.is_default': differently(
    'mails and tickets lead to the host of BASE_URL: make it this domain',
    'management-api.md#these-settings-are-accepted-with-a-warning-that-names-them',
    isTrue,
  ),
  'customDomains.relying_party_identifier': absent(
    'passkeys are bound to the host of the pages: those of a parent domain are not found',
  ),

  networkACLs: inForce,
};
