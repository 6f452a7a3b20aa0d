// A tenant in the deploy tool's format, with every kind of setting that the tool supports.
import { generateKeyPairSync } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { stringify } from 'yaml';
import { makeCertificate } from '../saml/support.ts';

/** Secrets of the sample, which no export contains. */
export const SECRETS = {
  oauth2: 'secret-of-the-oauth2-connection',
  smtp: 'secret-of-the-mail-provider',
  twilio: 'secret-of-the-phone-provider',
  hook: 'secret-of-the-event-stream',
  action: 'secret-of-an-action',
  rules: 'secret-of-the-rules',
  database: 'secret-of-a-database',
} as const;

const API = 'https://things.example.test/';
const { publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
const pem = publicKey.export({ type: 'spki', format: 'pem' }).toString();

const script = 'function (user, context, callback) {\n  callback(null, user, context);\n}\n';
const code = 'exports.onExecutePostLogin = async (event, api) => {};\n';
const page = '<!DOCTYPE html>\n<html><body>A page of our own</body></html>\n';
const mail = '<html><body>{{ url }}</body></html>\n';

/** The files that the tenant's file refers to. */
const FILES: Readonly<Record<string, string>> = {
  'pages/login.html': page,
  'pages/password_reset.html': page,
  'pages/error_page.html': page,
  'emails/verify.html': mail,
  'connections/code.html': '{{ code }}',
  'actions/greet/code.js': code,
  'actions/exchange/code.js':
    "exports.onExecuteCustomTokenExchange = async (event, api) => api.access.deny('invalid_request', 'no');\n",
  'actions/machines/code.js':
    "exports.onExecuteCredentialsExchange = async (event, api) => {\n  if (event.secrets.KEY === '') api.access.deny('access_denied', 'no key');\n};\n",
  'action-modules/shared.js': 'module.exports = {};\n',
  'rules/enrich.js': script,
  'rules/refuse.js':
    "function refuse(user, context, callback) {\n  if (configuration.SAMPLE_KEY === 'x') return callback(new UnauthorizedError('no'));\n  callback(null, user, context);\n}\n",
  'hooks/exchange.js': 'module.exports = function (client, scope, audience, context, cb) { cb(); };\n',
  'databases/users/login.js': 'function login(email, password, callback) { callback(null); }\n',
  'databases/users/get_user.js': 'function getByEmail(email, callback) { callback(null); }\n',
  'databases/users/create.js':
    'function create(user, callback) { callback(new ValidationError("no", "no")); }\n',
  'databases/users/verify.js': 'function verify(email, callback) { callback(null, true); }\n',
  'databases/users/delete.js': 'function remove(id, callback) { callback(null); }\n',
  'databases/users/change_password.js':
    'function changePassword(email, password, callback) { callback(null, configuration.KEY !== ""); }\n',
  'forms/Details.json': JSON.stringify({
    name: 'Details',
    languages: { primary: 'en' },
    nodes: [{ id: 'step_1', type: 'STEP', config: { components: [] }, alias: 'First' }],
    start: { next_node: 'step_1' },
    ending: { resume_flow: true },
  }),
  'flows/Store details.json': JSON.stringify({
    name: 'Store details',
    actions: [{ id: 'a1', type: 'FLOW', action: 'RETURN_JSON', params: { payload: {} } }],
  }),
};

const MAIL_TEMPLATES = ['verify_email', 'reset_email', 'welcome_email', 'blocked_account', 'user_invitation'];

const TENANT = {
  tenant: {
    friendly_name: 'Sample',
    support_email: 'help@example.test',
    support_url: 'https://example.test/help',
    enabled_locales: ['en', 'de'],
    default_directory: 'Username-Password-Authentication',
    session_lifetime: 96,
    idle_session_lifetime: 24,
    flags: { enable_client_connections: false },
  },
  pages: [
    { name: 'login', html: './pages/login.html', enabled: true },
    { name: 'password_reset', html: './pages/password_reset.html', enabled: true },
    { name: 'error_page', html: './pages/error_page.html', show_log_link: false },
  ],
  clients: [
    {
      name: 'Sample SPA',
      app_type: 'spa',
      callbacks: ['https://spa.example.test/callback'],
      web_origins: ['https://spa.example.test'],
      allowed_logout_urls: ['https://spa.example.test'],
      grant_types: ['authorization_code', 'refresh_token'],
      refresh_token: { rotation_type: 'rotating', expiration_type: 'expiring' },
    },
    {
      name: 'Sample web',
      app_type: 'regular_web',
      callbacks: ['https://web.example.test/callback'],
      organization_usage: 'allow',
      organization_require_behavior: 'no_prompt',
      oidc_logout: { backchannel_logout_urls: ['https://web.example.test/ended'] },
      client_metadata: { team: 'web' },
    },
    {
      name: 'Sample native',
      app_type: 'native',
      mobile: { ios: { team_id: 'ABC', app_bundle_identifier: 'x.y' } },
    },
    { name: 'Sample machine', app_type: 'non_interactive', grant_types: ['client_credentials'] },
    {
      name: 'Sample key holder',
      app_type: 'non_interactive',
      client_authentication_methods: {
        private_key_jwt: { credentials: [{ name: 'first', credential_type: 'public_key', pem }] },
      },
    },
    { name: 'Sample API as a client', app_type: 'resource_server', resource_server_identifier: API },
  ],
  resourceServers: [
    {
      name: 'Things',
      identifier: API,
      scopes: [{ value: 'read:things', description: 'Read things' }, { value: 'write:things' }],
      signing_alg: 'RS256',
      token_dialect: 'access_token_authz',
      enforce_policies: true,
      allow_offline_access: true,
      token_lifetime: 3600,
    },
    { name: 'Old things', identifier: 'urn:old-things', signing_alg: 'HS256' },
  ],
  clientGrants: [
    { client_id: 'Sample machine', audience: API, scope: ['read:things'] },
    {
      client_id: 'Sample web',
      audience: API,
      scope: [],
      organization_usage: 'allow',
      allow_any_organization: true,
    },
  ],
  databases: [
    {
      name: 'Username-Password-Authentication',
      strategy: 'auth0',
      enabled_clients: ['Sample SPA', 'Sample web'],
      options: {
        passwordPolicy: 'good',
        password_history: { enable: true, size: 5 },
        brute_force_protection: true,
      },
    },
    {
      name: 'legacy-users',
      strategy: 'auth0',
      enabled_clients: ['Sample web'],
      options: {
        import_mode: true,
        enabledDatabaseCustomization: true,
        customScripts: { login: './databases/users/login.js', get_user: './databases/users/get_user.js' },
      },
    },
    {
      name: 'users-elsewhere',
      strategy: 'auth0',
      enabled_clients: ['Sample web'],
      options: {
        import_mode: false,
        enabledDatabaseCustomization: true,
        configuration: { KEY: SECRETS.database },
        customScripts: Object.fromEntries(
          ['login', 'get_user', 'create', 'verify', 'delete', 'change_password'].map((name) => [
            name,
            `./databases/users/${name}.js`,
          ]),
        ),
      },
    },
  ],
  connections: [
    {
      name: 'forge',
      strategy: 'oauth2',
      display_name: 'The forge',
      enabled_clients: ['Sample web'],
      options: {
        authorizationURL: 'https://forge.example.test/authorize',
        tokenURL: 'https://forge.example.test/token',
        client_id: 'forge-client',
        client_secret: SECRETS.oauth2,
        scope: ['profile', 'email'],
        scripts: {
          fetchUserProfile: 'function (token, context, callback) { callback(null, { user_id: 1 }); }',
        },
      },
    },
    {
      name: 'google-oauth2',
      strategy: 'google-oauth2',
      enabled_clients: ['Sample SPA'],
      options: { client_id: 'google-client', client_secret: 'google-secret', email: true, profile: true },
    },
    {
      name: 'workforce',
      strategy: 'oidc',
      enabled_clients: ['Sample web'],
      show_as_button: true,
      options: {
        type: 'back_channel',
        issuer: 'https://workforce.example.test/',
        authorization_endpoint: 'https://workforce.example.test/authorize',
        token_endpoint: 'https://workforce.example.test/token',
        jwks_uri: 'https://workforce.example.test/jwks',
        client_id: 'workforce-client',
        client_secret: 'workforce-secret',
        scope: 'openid profile email',
        domain_aliases: ['workforce.example.test'],
      },
    },
    {
      name: 'partner',
      strategy: 'samlp',
      enabled_clients: ['Sample web'],
      options: {
        signInEndpoint: 'https://partner.example.test/saml',
        signingCert: (await makeCertificate()).certificate,
        signatureAlgorithm: 'rsa-sha256',
        digestAlgorithm: 'sha256',
        fieldsMap: { email: 'mail' },
      },
    },
    {
      name: 'email',
      strategy: 'email',
      enabled_clients: ['Sample SPA'],
      options: {
        name: 'email',
        email: { from: 'code@example.test', subject: 'Your code', syntax: 'liquid', body: './code.html' },
        totp: { length: 6, time_step: 180 },
        brute_force_protection: true,
      },
    },
    {
      name: 'sms',
      strategy: 'sms',
      enabled_clients: ['Sample native'],
      options: {
        provider: 'sms_gateway',
        gateway_url: 'https://sms.example.test/send',
        from: '+15550100100',
        syntax: 'md_with_macros',
        template: 'Your code is @@password@@',
        totp: { length: 6, time_step: 300 },
      },
    },
    {
      name: 'directory',
      strategy: 'google-apps',
      enabled_clients: ['Sample web'],
      options: {
        client_id: 'directory-client',
        client_secret: 'directory-secret',
        domain: 'directory.example.test',
        tenant_domain: 'directory.example.test',
      },
      directory_provisioning_configuration: {
        mapping: [{ auth0: 'email', idp: 'mail' }],
        synchronize_automatically: false,
      },
    },
  ],
  guardianFactors: ['sms', 'otp', 'email', 'push-notification', 'webauthn-roaming', 'recovery-code'].map(
    (name) => ({
      name,
      enabled: name === 'otp' || name === 'recovery-code',
    }),
  ),
  guardianPolicies: { policies: ['all-applications'] },
  guardianPhoneFactorSelectedProvider: { provider: 'twilio' },
  guardianPhoneFactorMessageTypes: { message_types: ['sms', 'voice'] },
  guardianFactorProviders: [
    { name: 'sms', provider: 'twilio', sid: 'AC1', auth_token: 'sms-token', from: '+15550100100' },
  ],
  guardianFactorTemplates: [
    { name: 'sms', enrollment_message: '{{code}} to enroll', verification_message: '{{code}} to log in' },
  ],
  attackProtection: {
    bruteForceProtection: {
      enabled: true,
      shields: ['block'],
      mode: 'count_per_identifier_and_ip',
      allowlist: ['192.0.2.1'],
      max_attempts: 8,
    },
    suspiciousIpThrottling: {
      enabled: true,
      shields: ['block'],
      allowlist: [],
      stage: {
        'pre-login': { max_attempts: 90, rate: 864_000 },
        'pre-user-registration': { max_attempts: 40, rate: 1200 },
      },
    },
    breachedPasswordDetection: {
      enabled: false,
      shields: [],
      admin_notification_frequency: [],
      method: 'standard',
    },
  },
  roles: [
    {
      name: 'Editor',
      description: 'Writes things',
      permissions: [
        { permission_name: 'read:things', resource_server_identifier: API },
        { permission_name: 'write:things', resource_server_identifier: API },
      ],
    },
    { name: 'Reader', description: 'Reads things', permissions: [] },
  ],
  organizations: [
    {
      name: 'acme',
      display_name: 'ACME',
      branding: { colors: { primary: '#112233', page_background: '#ffffff' } },
      metadata: { tier: 'gold' },
      connections: [
        { name: 'workforce', assign_membership_on_login: true, show_as_button: true },
        {
          name: 'Username-Password-Authentication',
          assign_membership_on_login: false,
          is_signup_enabled: false,
        },
      ],
      client_grants: [{ client_id: 'Sample web', audience: API }],
    },
    { name: 'globex', display_name: 'Globex', connections: [] },
  ],
  emailProvider: {
    name: 'smtp',
    enabled: true,
    default_from_address: 'no-reply@example.test',
    credentials: {
      smtp_host: 'smtp.example.test',
      smtp_port: 2525,
      smtp_user: 'mailer',
      smtp_pass: SECRETS.smtp,
    },
  },
  emailTemplates: MAIL_TEMPLATES.map((template) => ({
    template,
    enabled: true,
    syntax: 'liquid',
    from: 'no-reply@example.test',
    subject: 'From the sample',
    urlLifetimeInSeconds: 432_000,
    body: './emails/verify.html',
  })),
  branding: {
    colors: { primary: '#3b5bdb', page_background: '#f4f5fb' },
    logo_url: 'https://example.test/logo.png',
    favicon_url: 'https://example.test/favicon.png',
  },
  themes: [
    {
      displayName: 'Sample',
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
        body_text: '#1e212a',
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
      page_background: { background_color: '#ffffff', background_image_url: '', page_layout: 'center' },
      widget: {
        header_text_alignment: 'center',
        logo_height: 52,
        logo_position: 'center',
        logo_url: '',
        social_buttons_layout: 'bottom',
      },
    },
  ],
  phoneProviders: [
    {
      name: 'twilio',
      disabled: false,
      configuration: { sid: 'AC2', default_from: '+15550100101', delivery_methods: ['text'] },
      credentials: { auth_token: SECRETS.twilio },
    },
  ],
  phoneTemplates: [
    {
      type: 'otp_verify',
      disabled: false,
      content: { from: '+15550100101', body: { text: 'Code {{ code }}', voice: 'Code {{ code }}' } },
    },
  ],
  prompts: {
    universal_login_experience: 'new',
    identifier_first: true,
    customText: {
      en: { login: { login: { title: 'Welcome to the sample' } } },
      de: { login: { login: { title: 'Willkommen' } } },
    },
    partials: { login: { login: { 'form-content-start': '<p>Hello</p>' } } },
    screenRenderers: [],
  },
  actions: [
    {
      name: 'greet',
      code: './actions/greet/code.js',
      dependencies: [{ name: 'lodash', version: '4.17.21' }],
      deployed: true,
      secrets: [],
      status: 'built',
      runtime: 'node22',
      supported_triggers: [{ id: 'post-login', version: 'v3' }],
    },
    {
      name: 'machines',
      code: './actions/machines/code.js',
      dependencies: [],
      deployed: true,
      secrets: [{ name: 'KEY', value: SECRETS.action }],
      status: 'built',
      runtime: 'node22',
      supported_triggers: [{ id: 'credentials-exchange', version: 'v2' }],
      modules: [{ module_name: 'shared', module_version_number: 1 }],
    },
    {
      name: 'exchange',
      code: './actions/exchange/code.js',
      dependencies: [],
      deployed: true,
      secrets: [],
      status: 'built',
      runtime: 'node22',
      supported_triggers: [{ id: 'custom-token-exchange', version: 'v1' }],
    },
  ],
  triggers: {
    'post-login': [{ action_name: 'greet', display_name: 'Greet' }],
    'credentials-exchange': [{ action_name: 'machines', display_name: 'Machines' }],
  },
  actionModules: [
    {
      name: 'shared',
      code: './action-modules/shared.js',
      dependencies: [],
      secrets: [],
      all_changes_published: true,
    },
  ],
  rules: [
    { name: 'refuse', script: './rules/refuse.js', enabled: true, order: 5, stage: 'login_success' },
    { name: 'enrich', script: './rules/enrich.js', enabled: true, order: 1, stage: 'login_success' },
  ],
  rulesConfigs: [{ key: 'SAMPLE_KEY', value: SECRETS.rules }],
  hooks: [
    {
      name: 'exchange',
      script: './hooks/exchange.js',
      enabled: false,
      triggerId: 'credentials-exchange',
      dependencies: {},
      secrets: {},
    },
  ],
  logStreams: [
    {
      name: 'audit',
      type: 'http',
      sink: {
        httpEndpoint: 'https://logs.example.test/in',
        httpContentFormat: 'JSONLINES',
        httpContentType: 'application/json',
        httpCustomHeaders: [],
      },
      filters: [{ type: 'category', name: 'auth.login.fail' }],
      status: 'active',
    },
  ],
  customDomains: [
    {
      domain: 'login.example.test',
      type: 'self_managed_certs',
      tls_policy: 'recommended',
      domain_metadata: { a: 'b' },
    },
  ],
  networkACLs: [
    {
      description: 'Only from here',
      active: false,
      priority: 2,
      rule: { action: { block: true }, scope: 'authentication', match: { geo_country_codes: ['ZZ'] } },
    },
  ],
  selfServiceProfiles: [
    {
      name: 'Partners',
      description: 'Partners set their connection up',
      allowed_strategies: ['oidc', 'samlp'],
      user_attributes: [{ name: 'email', description: 'Address', is_optional: false }],
      branding: { colors: { primary: '#19aecc' } },
      customText: { en: { 'get-started': { introduction: 'Welcome' } } },
    },
  ],
  userAttributeProfiles: [
    {
      name: 'Usual attributes',
      user_id: { oidc_mapping: 'sub', saml_mapping: ['urn:oid:0.9.2342'], scim_mapping: 'externalId' },
      user_attributes: {
        email: {
          label: 'E-mail',
          description: 'Address',
          auth0_mapping: 'email',
          profile_required: true,
          oidc_mapping: { mapping: '${context.tokenset.email}', display_name: 'email' },
          saml_mapping: ['mail'],
          scim_mapping: 'emails[primary eq true].value',
        },
      },
    },
  ],
  connectionProfiles: [
    {
      name: 'Enterprise',
      organization: { show_as_button: 'optional', assign_membership_on_login: 'required' },
      connection_name_prefix_template: 'org-{org_name}',
      enabled_features: ['scim'],
    },
  ],
  tokenExchangeProfiles: [
    {
      name: 'Old tokens',
      type: 'custom_authentication',
      subject_token_type: 'urn:example:old-token',
      action: 'exchange',
    },
  ],
  forms: [{ name: 'Details', body: './forms/Details.json' }],
  flows: [{ name: 'Store details', body: './flows/Store details.json' }],
  flowVaultConnections: [{ name: 'Vault', app_id: 'HTTP' }],
  eventStreams: [
    {
      name: 'People',
      status: 'enabled',
      subscriptions: [{ event_type: 'user.created' }],
      destination: {
        type: 'webhook',
        configuration: {
          webhook_endpoint: 'https://events.example.test/in',
          webhook_authorization: { method: 'bearer', token: SECRETS.hook },
        },
      },
    },
  ],
  rateLimitPolicies: [
    {
      resource: 'oauth_authentication_api',
      consumer: 'client',
      consumer_selector: 'third_party_clients',
      configuration: { action: 'log', limit: 50 },
    },
  ],
  riskAssessment: { settings: { enabled: false }, new_device: { remember_for: 20 } },
  supplementalSignals: { akamai_enabled: true },
};

/** Writes the sample for the tool. @returns the path of its main file */
export async function writeSample(folder: string): Promise<string> {
  for (const [name, text] of Object.entries({ ...FILES, 'tenant.yaml': stringify(TENANT) })) {
    await mkdir(dirname(join(folder, name)), { recursive: true });
    await writeFile(join(folder, name), text);
  }
  return join(folder, 'tenant.yaml');
}

/** Replacements for the placeholders that an export has for secrets known to the tool. */
export const MAPPINGS = {
  CONNECTIONS_OAUTH2_SECRET: SECRETS.oauth2,
  CONNECTIONS_GOOGLE_OAUTH2_SECRET: 'google-secret',
  CONNECTIONS_GOOGLE_APPS_SECRET: 'directory-secret',
  CONNECTIONS_OIDC_SECRET: 'workforce-secret',
  SMTP_USER: 'mailer',
  SMTP_PASS: SECRETS.smtp,
  TWILIO_AUTH_TOKEN: SECRETS.twilio,
};

/** The event stream with its secret, which the tool does not export. */
export const EVENT_STREAM = TENANT.eventStreams[0];

/** The client with its key; the tool exports only the key's name. */
export const KEY_HOLDER = TENANT.clients.find(({ name }) => name === 'Sample key holder') ?? {};

/** Secrets that exports leave out: of an action, of rule variables, and of a database's configuration. */
export const LEFT_OUT = {
  action: { name: 'machines', secrets: [{ name: 'KEY', value: SECRETS.action }] },
  rulesConfigs: TENANT.rulesConfigs,
  configuration: { KEY: SECRETS.database },
};
