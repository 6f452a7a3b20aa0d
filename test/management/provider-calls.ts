// The calls of the published Terraform provider for each of its resources, as data: what it creates and changes, and what
// it reads afterwards. tool-calls.ts has those that once went wrong.
import type { ToolCall, ToolRun } from './tool-calls.ts';

type Body = Readonly<Record<string, unknown>>;

/** A resource that is created by a POST to a path, read and changed at its id, and deleted there. */
export const plan = (
  name: string,
  path: string,
  bodies: { create: Body; changes?: readonly Body[] },
  more: Partial<ToolRun> & { id?: string; put?: boolean } = {},
): ToolRun => {
  const { id = 'id', put = false, ...rest } = more;
  const { create, changes = [] } = bodies;
  const read = `${path}/{made}`;
  return {
    name,
    calls: [
      { method: 'POST', path, body: create, keep: { made: id } },
      ...changes.map((body): ToolCall => ({ method: put ? 'PUT' : 'PATCH', path: read, body })),
    ],
    read,
    after: [{ method: 'DELETE', path: read }],
    ...rest,
  };
};

/** Settings that are changed where they are read. */
const settings = (
  name: string,
  path: string,
  bodies: readonly unknown[],
  method: ToolCall['method'] = 'PATCH',
  more: Partial<ToolRun> = {},
): ToolRun => ({ name, calls: bodies.map((body) => ({ method, path, body })), read: path, ...more });

/** A list to which a call adds, and from which another removes. */
const members = (
  name: string,
  before: readonly ToolCall[],
  path: string,
  { add, remove, holds }: { add: unknown; remove?: unknown; holds: string },
  more: Partial<ToolRun> = {},
): ToolRun => ({
  name,
  before,
  calls: [{ method: 'POST', path, body: add }],
  read: path,
  unread: Object.keys((Array.isArray(add) ? {} : add) as Body),
  holds,
  after: [{ method: 'DELETE', path, ...(remove !== undefined && { body: remove }) }],
  ...more,
});

export const make = (path: string, body: Body, keep: Readonly<Record<string, string>>): ToolCall => ({
  method: 'POST',
  path,
  body,
  keep,
});
export const client = (name: string) =>
  make('/clients', { name, app_type: 'non_interactive' }, { client: 'client_id' });
export const organization = (name: string) =>
  make('/organizations', { name, display_name: name }, { organization: 'id' });
export const role = (name: string) => make('/roles', { name }, { role: 'id' });
export const user = (name: string) =>
  make(
    '/users',
    {
      connection: 'Username-Password-Authentication',
      email: `${name}@example.test`,
      password: 'Correct-Horse-Battery-9',
    },
    { user: 'user_id' },
  );
export const api = (identifier: string) =>
  make('/resource-servers', { name: identifier, identifier, scopes: [{ value: 'read' }] }, { api: 'id' });
export const connection = (name: string, strategy = 'oidc') =>
  make('/connections', { name, strategy, options: { client_id: 'id' } }, { connection: 'id' });
export const action = (name: string, trigger: string) =>
  make(
    '/actions/actions',
    {
      name,
      supported_triggers: [{ id: trigger, version: 'v3' }],
      code: 'exports.onExecute = async () => {};',
    },
    { action: 'id' },
  );
const TRIGGERS = [{ id: 'post-login', version: 'v3' }];
const CODE = 'exports.onExecutePostLogin = async (event, api) => {};';

export const permission = (identifier: string) => [
  { resource_server_identifier: identifier, permission_name: 'read' },
];

const ACTIONS: readonly ToolRun[] = [
  plan(
    'auth0_action',
    '/actions/actions',
    {
      create: { name: 'Provider action', supported_triggers: TRIGGERS, code: CODE },
      changes: [
        {
          name: 'Provider action',
          supported_triggers: TRIGGERS,
          code: `${CODE}//`,
          dependencies: [{ name: 'auth0', version: '2.41.0' }],
          runtime: 'node22',
          secrets: [{ name: 'foo', value: '111111' }],
        },
      ],
    },
    { unread: ['secrets', 'dependencies'] },
  ),
  {
    name: 'auth0_action, deployed with a package that is not installed',
    before: [action('Provider deployed', 'post-login')],
    calls: [
      {
        method: 'PATCH',
        path: '/actions/actions/{action}',
        body: { dependencies: [{ name: 'moment', version: '2.29.4' }] },
      },
      { method: 'POST', path: '/actions/actions/{action}/deploy', expects: { deployed: true, number: 1 } },
    ],
    read: '/actions/actions/{action}',
    unread: ['dependencies'],
    warns: 'the package moment is not in',
    after: [{ method: 'DELETE', path: '/actions/actions/{action}' }],
  },
  plan('auth0_action_module', '/actions/modules', {
    create: { name: 'Provider module', code: 'module.exports = {};' },
    changes: [{ code: 'module.exports = { a: 1 };' }],
  }),
  {
    name: 'auth0_trigger_actions',
    before: [
      action('Provider bound', 'post-login'),
      { method: 'POST', path: '/actions/actions/{action}/deploy' },
    ],
    calls: [
      {
        method: 'PATCH',
        path: '/actions/triggers/post-login/bindings',
        body: { bindings: [{ display_name: 'Bound', ref: { type: 'action_id', value: '{action}' } }] },
      },
    ],
    read: '/actions/triggers/post-login/bindings?page=0&per_page=50',
    unread: ['bindings'],
    expects: { 'bindings.0.display_name': 'Bound', total: 1 },
    holds: 'Bound',
    after: [
      { method: 'PATCH', path: '/actions/triggers/post-login/bindings', body: { bindings: [] } },
      { method: 'DELETE', path: '/actions/actions/{action}' },
    ],
  },
  {
    name: 'auth0_token_exchange_profile',
    before: [action('Provider exchange', 'custom-token-exchange')],
    calls: [
      make(
        '/token-exchange-profiles',
        {
          name: 'Provider profile',
          subject_token_type: 'https://acme.example/cis-token',
          action_id: '{action}',
          type: 'custom_authentication',
        },
        { profile: 'id' },
      ),
      {
        method: 'PATCH',
        path: '/token-exchange-profiles/{profile}',
        body: { name: 'Renamed', subject_token_type: 'https://acme.example/cis-token-2' },
      },
    ],
    read: '/token-exchange-profiles/{profile}',
    unread: [],
    after: [{ method: 'DELETE', path: '/token-exchange-profiles/{profile}' }],
  },
];

const PROTECTION: readonly ToolRun[] = [
  settings('auth0_attack_protection: breached passwords', '/attack-protection/breached-password-detection', [
    {
      enabled: true,
      shields: ['block', 'admin_notification'],
      admin_notification_frequency: ['daily'],
      method: 'standard',
      stage: { 'pre-user-registration': { shields: ['block'] } },
    },
    { enabled: false },
  ]),
  settings('auth0_attack_protection: guesses', '/attack-protection/brute-force-protection', [
    {
      enabled: true,
      shields: ['block', 'user_notification'],
      allowlist: ['127.0.0.1'],
      mode: 'count_per_identifier_and_ip',
      max_attempts: 5,
    },
  ]),
  settings('auth0_attack_protection: addresses', '/attack-protection/suspicious-ip-throttling', [
    {
      enabled: true,
      shields: ['admin_notification', 'block'],
      allowlist: ['192.168.1.1'],
      stage: {
        'pre-login': { max_attempts: 100, rate: 864000 },
        'pre-user-registration': { max_attempts: 50, rate: 1200 },
      },
    },
  ]),
  settings('auth0_attack_protection: bots', '/attack-protection/bot-detection', [
    {
      bot_detection_level: 'low',
      challenge_password_policy: 'when_risky',
      challenge_passwordless_policy: 'when_risky',
      challenge_password_reset_policy: 'when_risky',
      allowlist: ['10.0.0.0'],
      monitoring_mode_enabled: false,
    },
  ]),
  settings(
    'auth0_attack_protection: captchas',
    '/attack-protection/captcha',
    [{ active_provider_id: 'recaptcha_v2', recaptcha_v2: { site_key: 'key', secret: 'secret' } }],
    'PATCH',
    { unread: ['recaptcha_v2.secret'] },
  ),
  plan(
    'auth0_network_acl',
    '/network-acls',
    {
      create: {
        description: 'Provider list',
        active: true,
        priority: 10,
        rule: { action: { block: true }, match: { asns: [9453] }, scope: 'tenant' },
      },
      changes: [
        {
          description: 'Provider list, changed',
          active: false,
          priority: 2,
          rule: {
            action: { redirect: true, redirect_uri: 'https://example.test/blocked' },
            not_match: { ipv4_cidrs: ['192.168.1.0/24'], hostnames: ['login.example.test'] },
            scope: 'authentication',
          },
        },
      ],
    },
    { put: true, warns: 'the network ACL \\"Provider list\\" applies to no request' },
  ),
  settings('auth0_risk_assessments', '/risk-assessments/settings', [{ enabled: true }, { enabled: false }]),
  settings('auth0_risk_assessments_new_device', '/risk-assessments/settings/new-device', [
    { remember_for: 20 },
  ]),
  settings('auth0_supplemental_signals', '/supplemental-signals', [{ akamai_enabled: true }]),
  plan('auth0_rate_limit_policy', '/rate-limit-policies', {
    create: {
      resource: 'oauth_authentication_api',
      consumer: 'client',
      consumer_selector: 'default',
      configuration: { action: 'block', limit: 100 },
    },
    changes: [
      { configuration: { action: 'redirect', limit: 500, redirect_uri: 'https://example.test/limited' } },
    ],
  }),
];

const APPEARANCE: readonly ToolRun[] = [
  settings('auth0_branding', '/branding', [
    { favicon_url: 'https://example.test/favicon.ico', logo_url: 'https://example.test/logo.png' },
    { colors: { primary: '#0059d6', page_background: '#000000' } },
  ]),
  plan(
    'auth0_branding_theme',
    '/branding/themes',
    {
      create: {
        borders: {
          button_border_radius: 3,
          button_border_weight: 1,
          buttons_style: 'rounded',
          input_border_radius: 3,
          input_border_weight: 1,
          inputs_style: 'rounded',
          show_widget_shadow: true,
          widget_border_weight: 0,
          widget_corner_radius: 5,
        },
        colors: {
          base_focus_color: '#635dff',
          base_hover_color: '#000000',
          body_text: '#1e212a',
          captcha_widget_theme: 'auto',
          error: '#d03c38',
          header: '#1e212a',
          icons: '#65676e',
          input_background: '#ffffff',
          input_border: '#c9cace',
          input_filled_text: '#000000',
          input_labels_placeholders: '#65676e',
          links_focused_components: '#635dff',
          primary_button: '#635dff',
          primary_button_label: '#ffffff',
          secondary_button_border: '#c9cace',
          secondary_button_label: '#1e212a',
          success: '#13a688',
          widget_background: '#ffffff',
          widget_border: '#c9cace',
        },
        fonts: {
          body_text: { bold: false, size: 87.5 },
          buttons_text: { bold: false, size: 100 },
          font_url: '',
          input_labels: { bold: false, size: 100 },
          links: { bold: true, size: 87.5 },
          links_style: 'normal',
          reference_text_size: 16,
          subtitle: { bold: false, size: 87.5 },
          title: { bold: false, size: 150 },
        },
        page_background: { background_color: '#000000', background_image_url: '', page_layout: 'center' },
        widget: {
          header_text_alignment: 'center',
          logo_height: 52,
          logo_position: 'center',
          logo_url: '',
          social_buttons_layout: 'bottom',
        },
      },
    },
    { id: 'themeId' },
  ),
  plan('auth0_branding_phone_notification_template', '/branding/phone/templates', {
    create: {
      type: 'otp_enroll',
      disabled: false,
      content: { from: '+15550100', body: { text: 'Code: @{code}', voice: 'Code @{code}' } },
    },
    changes: [{ disabled: true, content: { from: '+15550101', body: { text: 'Code: @{code}' } } }],
  }),
  plan(
    'auth0_phone_provider',
    '/branding/phone/providers',
    {
      create: {
        name: 'twilio',
        disabled: false,
        configuration: { default_from: '+15550100', sid: 'sid', delivery_methods: ['text', 'voice'] },
        credentials: { auth_token: 'token' },
      },
    },
    { unread: ['credentials.auth_token'] },
  ),
  settings('auth0_prompt', '/prompts', [
    { universal_login_experience: 'new', identifier_first: true, webauthn_platform_first_factor: false },
  ]),
  settings(
    'auth0_prompt_custom_text',
    '/prompts/login/custom-text/en',
    [{ login: { title: 'Welcome', buttonText: 'Go on' } }, {}],
    'PUT',
  ),
  settings(
    'auth0_prompt_partials, auth0_prompt_screen_partial, auth0_prompt_screen_partials',
    '/prompts/login/partials',
    [{ login: { 'form-content-start': '<div>Start</div>' } }],
    'PUT',
  ),
  settings(
    'auth0_prompt_screen_renderer',
    '/prompts/login-id/screen/login-id/rendering',
    [{ rendering_mode: 'advanced', context_configuration: ['branding.settings'], head_tags: [] }],
    'PATCH',
  ),
  {
    name: 'auth0_pages',
    calls: [
      {
        method: 'PATCH',
        path: '/tenants/settings',
        body: {
          change_password: { enabled: true, html: '<html>Password</html>' },
          guardian_mfa_page: { enabled: true, html: '<html>Factor</html>' },
          error_page: { html: '<html>Error</html>', show_log_link: false, url: 'https://example.test/error' },
        },
      },
      { method: 'PATCH', path: '/tenants/settings', body: { error_page: null } },
    ],
    read: '/tenants/settings',
  },
];

const APPLICATIONS: readonly ToolRun[] = [
  plan(
    'auth0_client',
    '/clients',
    {
      create: {
        name: 'Provider client',
        app_type: 'spa',
        jwt_configuration: { lifetime_in_seconds: 300, secret_encoded: true },
        oidc_logout: {
          backchannel_logout_urls: ['https://app.example.test/logout'],
          backchannel_logout_initiators: { mode: 'all' },
          backchannel_logout_session_metadata: { include: true },
        },
      },
      changes: [
        {
          oidc_logout: {
            backchannel_logout_urls: ['https://app.example.test/logout'],
            backchannel_logout_initiators: {
              mode: 'custom',
              selected_initiators: ['idp-logout', 'rp-logout'],
            },
          },
        },
      ],
    },
    {
      id: 'client_id',
      lacks: ['jwt_configuration.alg'],
      expects: { 'signing_keys.length': 1 },
    },
  ),
  plan(
    'auth0_client whose logout goes to all',
    '/clients',
    {
      create: {
        name: 'Provider logout',
        oidc_logout: {
          backchannel_logout_urls: ['https://app.example.test/logout'],
          backchannel_logout_initiators: { mode: 'all' },
        },
      },
    },
    { id: 'client_id', lacks: ['oidc_logout.backchannel_logout_initiators.selected_initiators'] },
  ),
  {
    name: 'auth0_client whose back-channel logout is removed',
    before: [
      make(
        '/clients',
        { name: 'No logout', oidc_logout: { backchannel_logout_urls: ['https://app.example.test/logout'] } },
        { client: 'client_id' },
      ),
    ],
    calls: [{ method: 'PATCH', path: '/clients/{client}', body: { oidc_backchannel_logout: null } }],
    read: '/clients/{client}',
    lacks: ['oidc_logout'],
    after: [{ method: 'DELETE', path: '/clients/{client}' }],
  },
  plan(
    'auth0_client with a binding that does not exist',
    '/clients',
    { create: { name: 'Provider binding', addons: { samlp: { binding: 'binding' } } } },
    { id: 'client_id', warns: 'binding is no binding of logout messages here: Provider binding' },
  ),
  {
    name: 'auth0_client_credentials with privileged access to a token vault',
    before: [client('Provider credentials')],
    calls: [
      {
        method: 'PATCH',
        path: '/clients/{client}',
        body: {
          token_vault_privileged_access: {
            credentials: [{ id: 'cred_0123456789abcdef' }],
            grants: [{ connection: 'google-oauth2', scopes: ['https://www.googleapis.com/auth/calendar'] }],
            ip_allowlist: ['10.0.0.1'],
          },
        },
      },
      {
        method: 'PATCH',
        path: '/clients/{client}',
        body: { token_vault_privileged_access: null },
        lacks: ['token_vault_privileged_access'],
      },
    ],
    read: '/clients/{client}',
    warns: 'token_vault_privileged_access of Provider credentials has no effect',
    after: [{ method: 'DELETE', path: '/clients/{client}' }],
  },
  {
    name: 'auth0_client_grant',
    before: [api('https://grants.example.test/'), client('Provider grant')],
    calls: [
      make(
        '/client-grants',
        {
          client_id: '{client}',
          audience: 'https://grants.example.test/',
          scope: ['read'],
          subject_type: 'user',
        },
        { grant: 'id' },
      ),
      { method: 'PATCH', path: '/client-grants/{grant}', body: { scope: [] } },
    ],
    read: '/client-grants/{grant}',
    lacks: ['default_for'],
    after: [{ method: 'DELETE', path: '/clients/{client}' }],
  },
  {
    name: 'auth0_client_grant for all third-party applications',
    before: [api('https://third.example.test/')],
    calls: [
      make(
        '/client-grants',
        { audience: 'https://third.example.test/', scope: ['read'], default_for: 'third_party_clients' },
        { grant: 'id' },
      ),
      { method: 'PATCH', path: '/client-grants/{grant}', body: { scope: [] } },
    ],
    read: '/client-grants/{grant}',
    lacks: ['client_id'],
    expects: { subject_type: 'client' },
    after: [{ method: 'DELETE', path: '/client-grants/{grant}' }],
  },
  plan('auth0_resource_server', '/resource-servers', {
    create: {
      name: 'Provider API',
      identifier: 'https://provider-api.example.test/',
      signing_alg: 'RS256',
      token_lifetime: 7200,
      allow_offline_access: true,
    },
    changes: [{ scopes: [{ value: 'create:foo', description: 'Create foos' }] }, { scopes: [] }],
  }),
  plan(
    'auth0_resource_server with a policy',
    '/resource-servers',
    {
      create: {
        name: 'Provider policy',
        identifier: 'https://provider-policy.example.test/',
        authorization_policy: { policy_id: '019b76da-a800-73c9-b656-b349ae415c17' },
      },
    },
    { warns: 'authorization_policy of Provider policy is not enforced' },
  ),
];

const CONNECTIONS: readonly ToolRun[] = [
  plan(
    'auth0_connection: a custom database without the script login',
    '/connections',
    {
      create: { name: 'Provider-database', strategy: 'auth0', options: { passwordPolicy: 'fair' } },
      changes: [
        {
          options: {
            passwordPolicy: 'fair',
            enabledDatabaseCustomization: true,
            customScripts: { get_user: 'function getByEmail(email, callback) { callback(null); }' },
          },
        },
      ],
    },
    { warns: 'options.customScripts.login: without it nobody can log in in Provider-database' },
  ),
  plan(
    'auth0_connection: okta',
    '/connections',
    {
      create: {
        name: 'Provider-okta',
        strategy: 'okta',
        options: { client_id: '1', client_secret: '2', domain: 'domain.okta.example' },
      },
    },
    { expects: { 'options.attribute_map.mapping_mode': 'basic_profile' } },
  ),
  plan(
    'auth0_connection: google-apps, whose users stay known by the same id',
    '/connections',
    {
      create: {
        name: 'Provider-google',
        strategy: 'google-apps',
        options: { client_id: '1', domain: 'example.test', map_user_id_to_id: true },
      },
      changes: [{ options: { client_id: '2', domain: 'example.test' } }],
    },
    { expects: { 'options.map_user_id_to_id': true } },
  ),
  {
    name: 'auth0_connection_client, auth0_connection_clients',
    before: [client('Provider enabled'), connection('Provider-enabled')],
    calls: [
      {
        method: 'PATCH',
        path: '/connections/{connection}/clients',
        body: [{ client_id: '{client}', status: true }],
      },
    ],
    read: '/connections/{connection}/clients?take=50',
    unread: ['0'],
    expects: { 'clients.0.client_id': '{client}' },
    after: [{ method: 'DELETE', path: '/connections/{connection}' }],
  },
  {
    name: 'auth0_connection_scim_configuration',
    before: [connection('Provider-scim', 'okta')],
    calls: [
      { method: 'POST', path: '/connections/{connection}/scim-configuration' },
      {
        method: 'PATCH',
        path: '/connections/{connection}/scim-configuration',
        body: { user_id_attribute: 'externalId', mapping: [{ auth0: 'email', scim: 'userName' }] },
      },
    ],
    read: '/connections/{connection}/scim-configuration',
    after: [{ method: 'DELETE', path: '/connections/{connection}/scim-configuration' }],
  },
  {
    name: 'auth0_connection_directory',
    before: [connection('Provider-directory', 'google-apps')],
    calls: [
      {
        method: 'POST',
        path: '/connections/{connection}/directory-provisioning',
        body: { mapping: [{ auth0: 'external_id', idp: 'id' }] },
      },
      {
        method: 'PATCH',
        path: '/connections/{connection}/directory-provisioning',
        body: { mapping: [{ auth0: 'email', idp: 'primaryEmail' }] },
      },
    ],
    read: '/connections/{connection}/directory-provisioning',
    after: [{ method: 'DELETE', path: '/connections/{connection}/directory-provisioning' }],
  },
  plan('auth0_connection_profile', '/connection-profiles', {
    create: {
      name: 'Provider profile',
      organization: { show_as_button: 'required', assign_membership_on_login: 'optional' },
      connection_name_prefix_template: 'con-{org_id}-',
      enabled_features: ['scim', 'universal_logout'],
    },
    changes: [{ enabled_features: ['scim'] }],
  }),
  plan('auth0_user_attribute_profile', '/user-attribute-profiles', {
    create: {
      name: 'Provider attributes',
      user_attributes: {
        email: { description: 'Address', label: 'Email', profile_required: true, auth0_mapping: 'email' },
      },
    },
    changes: [{ name: 'Provider attributes, changed' }],
  }),
  plan('auth0_self_service_profile', '/self-service-profiles', {
    create: {
      name: 'Provider self-service',
      allowed_strategies: ['oidc', 'samlp'],
      user_attributes: [{ name: 'a', description: 'b', is_optional: true }],
      branding: { colors: { primary: '#0059d6' } },
    },
    changes: [{ description: 'changed' }],
  }),
];

const DOMAINS: readonly ToolRun[] = [
  plan(
    'auth0_custom_domain',
    '/custom-domains',
    {
      create: { domain: 'provider.example.test', type: 'auth0_managed_certs' },
      changes: [{ custom_client_ip_header: 'true-client-ip' }, { domain_metadata: { key: 'value' } }],
    },
    { id: 'custom_domain_id', expects: { is_default: false } },
  ),
];

const ORGANIZATIONS: readonly ToolRun[] = [
  plan('auth0_organization', '/organizations', {
    create: { name: 'provider-org', display_name: 'Provider' },
    changes: [
      {
        display_name: 'Acme',
        branding: { logo_url: 'https://acme.example/logo.svg', colors: { primary: '#e3e2f0' } },
        metadata: { some_key: 'some_value' },
      },
    ],
  }),
  {
    name: 'auth0_organization_connection, auth0_organization_connections',
    before: [organization('provider-connections'), connection('Provider-organization')],
    calls: [
      {
        method: 'POST',
        path: '/organizations/{organization}/connections',
        body: { connection_id: '{connection}', assign_membership_on_login: true, is_enabled: true },
      },
    ],
    read: '/organizations/{organization}/connections/{connection}',
    after: [{ method: 'DELETE', path: '/organizations/{organization}/connections/{connection}' }],
  },
  members(
    'auth0_organization_member, auth0_organization_members',
    [organization('provider-members'), user('provider-member')],
    '/organizations/{organization}/members',
    { add: { members: ['{user}'] }, remove: { members: ['{user}'] }, holds: '{user}' },
  ),
  members(
    'auth0_organization_member_role, auth0_organization_member_roles',
    [
      organization('provider-member-roles'),
      user('provider-member-role'),
      role('Provider member role'),
      { method: 'POST', path: '/organizations/{organization}/members', body: { members: ['{user}'] } },
    ],
    '/organizations/{organization}/members/{user}/roles',
    { add: { roles: ['{role}'] }, remove: { roles: ['{role}'] }, holds: '{role}' },
  ),
  members(
    'auth0_organization_client, auth0_organization_clients',
    [organization('provider-clients'), client('Provider member')],
    '/organizations/{organization}/clients',
    {
      add: { clients: [{ client_id: '{client}', use_for_member_access: true }] },
      remove: { clients: ['{client}'] },
      holds: '{client}',
    },
  ),
  {
    name: 'auth0_organization_discovery_domain, auth0_organization_discovery_domains',
    before: [organization('provider-domains')],
    calls: [
      make(
        '/organizations/{organization}/discovery-domains',
        { domain: 'provider-domain.example.test', status: 'pending' },
        { domain: 'id' },
      ),
      {
        method: 'PATCH',
        path: '/organizations/{organization}/discovery-domains/{domain}',
        body: { status: 'verified', use_for_organization_discovery: true },
      },
    ],
    read: '/organizations/{organization}/discovery-domains/{domain}',
    after: [{ method: 'DELETE', path: '/organizations/{organization}/discovery-domains/{domain}' }],
  },
  {
    name: 'auth0_organization_client_grant',
    before: [
      organization('provider-grants'),
      api('https://organization-grants.example.test/'),
      client('Provider organization grant'),
      make(
        '/client-grants',
        {
          client_id: '{client}',
          audience: 'https://organization-grants.example.test/',
          scope: ['read'],
          organization_usage: 'allow',
        },
        { grant: 'id' },
      ),
    ],
    calls: [
      {
        method: 'POST',
        path: '/organizations/{organization}/client-grants',
        body: { grant_id: '{grant}' },
      },
    ],
    read: '/organizations/{organization}/client-grants?include_totals=true',
    unread: ['grant_id'],
    holds: '{grant}',
    after: [{ method: 'DELETE', path: '/organizations/{organization}/client-grants/{grant}' }],
  },
];

const USERS: readonly ToolRun[] = [
  plan(
    'auth0_user',
    '/users',
    {
      create: {
        connection: 'Username-Password-Authentication',
        user_id: 'provider-user',
        email: 'provider-user@example.test',
        password: 'Correct-Horse-Battery-9',
        name: 'Firstname Lastname',
        user_metadata: { foo: 'bar' },
      },
      changes: [
        { name: 'Other', given_name: 'Firstname', picture: 'https://www.example.com/picture.jpg' },
        { user_metadata: {}, app_metadata: { foo: 'bar' } },
      ],
    },
    { id: 'user_id', unread: ['connection', 'password', 'user_id', 'user_metadata'] },
  ),
  members(
    'auth0_user_role, auth0_user_roles',
    [user('provider-role'), role('Provider user role')],
    '/users/{user}/roles',
    { add: { roles: ['{role}'] }, remove: { roles: ['{role}'] }, holds: '{role}' },
  ),
  members(
    'auth0_user_permission, auth0_user_permissions',
    [user('provider-permission'), api('https://user-permissions.example.test/')],
    '/users/{user}/permissions',
    {
      add: { permissions: permission('https://user-permissions.example.test/') },
      remove: { permissions: permission('https://user-permissions.example.test/') },
      holds: 'https://user-permissions.example.test/',
    },
  ),
  plan(
    'auth0_role',
    '/roles',
    {
      create: { name: 'Provider role' },
      changes: [{ name: 'Provider role', description: 'The One' }],
    },
    { expects: { type: 'tenant' } },
  ),
  {
    name: 'auth0_role of an organization',
    before: [organization('provider-roles')],
    calls: [
      make(
        '/roles',
        { name: 'Provider operator', type: 'organization', owner_id: '{organization}' },
        { role: 'id' },
      ),
      { method: 'PATCH', path: '/roles/{role}', body: { description: 'changed' } },
    ],
    read: '/roles/{role}',
    after: [{ method: 'DELETE', path: '/roles/{role}' }],
  },
  members(
    'auth0_role_permission, auth0_role_permissions',
    [role('Provider permissions'), api('https://role-permissions.example.test/')],
    '/roles/{role}/permissions',
    {
      add: { permissions: permission('https://role-permissions.example.test/') },
      remove: { permissions: permission('https://role-permissions.example.test/') },
      holds: 'https://role-permissions.example.test/',
    },
  ),
];

const SETTINGS: readonly ToolRun[] = [
  settings(
    'auth0_tenant',
    '/tenants/settings',
    [
      {
        friendly_name: 'Provider tenant',
        picture_url: 'https://example.test/logo.png',
        support_email: 'support@example.test',
        support_url: 'https://example.test/support',
        allowed_logout_urls: ['https://example.test/logout'],
        session_lifetime: 720,
        idle_session_lifetime: 72,
        enabled_locales: ['en', 'de', 'fr'],
        flags: { enable_public_signup_user_exists_error: true, use_scope_descriptions_for_consent: false },
        sessions: { oidc_logout_prompt_enabled: false },
        session_cookie: { mode: 'persistent' },
      },
    ],
    'PATCH',
    {
      lacks: ['error_page'],
      expects: { 'flags.enable_sso': true, 'flags.revoke_refresh_token_grant': false },
    },
  ),
  {
    name: 'auth0_email_provider',
    calls: [
      {
        method: 'POST',
        path: '/emails/provider',
        body: {
          name: 'ses',
          enabled: true,
          default_from_address: 'accounts@example.test',
          credentials: {
            accessKeyId: 'AKIAXXXXXXXXXXXXXXXX',
            secretAccessKey: 'secret',
            region: 'us-east-1',
          },
        },
      },
    ],
    read: '/emails/provider?fields=name,enabled,credentials,settings,default_from_address&include_fields=true',
    unread: ['credentials.accessKeyId', 'credentials.secretAccessKey'],
    after: [{ method: 'DELETE', path: '/emails/provider' }],
  },
  {
    name: 'auth0_email_template',
    calls: [
      {
        method: 'POST',
        path: '/email-templates',
        body: {
          template: 'welcome_email',
          body: '<html><body><h1>Welcome!</h1></body></html>',
          from: 'welcome@example.test',
          resultUrl: 'https://example.test/welcome',
          subject: 'Welcome',
          syntax: 'liquid',
          urlLifetimeInSeconds: 3600,
          enabled: true,
          includeEmailInRedirect: false,
        },
      },
      { method: 'PATCH', path: '/email-templates/welcome_email', body: { enabled: false } },
    ],
    read: '/email-templates/welcome_email',
  },
  {
    name: 'auth0_encryption_key_manager',
    calls: [{ method: 'POST', path: '/keys/encryption/rekey' }],
    read: '/keys/encryption?include_totals=true&page=0&per_page=5',
    expects: { total: 0 },
    warns: 'no encryption key was renewed',
  },
  settings('auth0_guardian: policy', '/guardian/policies', [['all-applications'], []], 'PUT', {
    isWhole: true,
  }),
  plan('auth0_rule', '/rules', {
    create: {
      name: 'Provider-rule',
      script: 'function (user, context, callback) { callback(null, user, context); }',
    },
    changes: [{ order: 100, enabled: false }],
  }),
  {
    name: 'auth0_rule_config',
    calls: [{ method: 'PUT', path: '/rules-configs/provider_key', body: { value: 'bar' } }],
    read: '/rules-configs',
    unread: ['value'],
    holds: 'provider_key',
    after: [{ method: 'DELETE', path: '/rules-configs/provider_key' }],
  },
  plan('auth0_hook', '/hooks', {
    create: {
      name: 'provider-hook',
      script: 'function (user, context, callback) { callback(null, { user }); }',
      triggerId: 'pre-user-registration',
    },
    changes: [{ enabled: true, dependencies: { auth0: '2.30.0' } }],
  }),
  plan(
    'auth0_log_stream with masked members',
    '/log-streams',
    {
      create: {
        name: 'Provider stream',
        type: 'datadog',
        pii_config: { log_fields: ['first_name', 'email', 'phone'] },
        sink: { datadogRegion: 'us', datadogApiKey: '121233123455' },
      },
      changes: [
        {
          name: 'Provider stream',
          pii_config: { log_fields: ['last_name', 'username'], method: 'mask' },
          filters: [{ type: 'category', name: 'auth.login.fail' }],
        },
        { pii_config: { log_fields: ['email'], method: 'hash', algorithm: 'xxhash' } },
      ],
    },
    { lacks: [] },
  ),
  plan('auth0_event_stream', '/event-streams', {
    create: {
      name: 'provider-stream',
      subscriptions: [{ event_type: 'user.created' }],
      destination: {
        type: 'eventbridge',
        configuration: { aws_account_id: '242849305777', aws_region: 'us-east-1' },
      },
    },
    changes: [{ subscriptions: [{ event_type: 'user.updated' }] }],
  }),
  plan('auth0_flow', '/flows', { create: { name: 'provider-flow' }, changes: [{ name: 'changed-flow' }] }),
  plan('auth0_flow_vault_connection', '/flows/vault/connections', {
    create: { app_id: 'HTTP', name: 'provider-vault' },
    changes: [{ name: 'changed-vault' }],
  }),
  plan('auth0_form', '/forms', {
    create: { name: 'provider-form', languages: { primary: 'en' }, ending: { resume_flow: true } },
    changes: [{ name: 'changed-form' }],
  }),
];

export const PROVIDER_RUNS: readonly ToolRun[] = [
  ...ACTIONS,
  ...PROTECTION,
  ...APPEARANCE,
  ...APPLICATIONS,
  ...CONNECTIONS,
  ...DOMAINS,
  ...ORGANIZATIONS,
  ...USERS,
  ...SETTINGS,
];
