// The calls of the published command line, by its commands, as data: what each sends, and what it needs of the answers.
// Its library adds `per_page=50&include_totals=true` to lists, and its `list` commands page by `per_page` and `page`.
import { action, api, client, connection, make, organization, role, user } from './provider-calls.ts';
import { look, set } from './provider-readings.ts';
import type { ToolCall, ToolRun } from './tool-calls.ts';

type Body = Readonly<Record<string, unknown>>;

const TOTALS = 'include_totals=true&per_page=50';
const PAGE = 'include_totals=true&page=0&per_page=100';

const send = (method: ToolCall['method'], path: string, body?: unknown): ToolCall => ({
  method,
  path,
  ...(body !== undefined && { body }),
});

/** A resource with the commands create, list, show, update and delete. */
const commands = (
  name: string,
  path: string,
  { create, update, list, holds }: { create: Body; update: Body; list: string; holds: readonly string[] },
  { id = 'id', more = [] }: { id?: string; more?: readonly ToolCall[] } = {},
): ToolRun => ({
  name: `the command line: ${name}`,
  calls: [
    make(path, create, { made: id }),
    look(list, { holds: [...holds, '"{made}"'] }),
    look(`${path}/{made}`, { expects: { [id]: '{made}' } }),
    send('PATCH', `${path}/{made}`, update),
    look(`${path}/{made}`, { expects: update }),
    ...more,
    send('DELETE', `${path}/{made}`),
  ],
});

const PAGED = ['"start":0', '"limit":100', '"total":'];
const CODE = 'exports.onExecutePostLogin = async (event, api) => {};';
const TRIGGER = [{ id: 'post-login', version: 'v3' }];

const APPLICATIONS: readonly ToolRun[] = [
  ...(
    [
      ['native', 'none', ['implicit', 'authorization_code', 'refresh_token']],
      ['spa', 'none', ['implicit', 'authorization_code', 'refresh_token']],
      ['regular_web', undefined, ['implicit', 'authorization_code', 'refresh_token', 'client_credentials']],
      ['non_interactive', 'client_secret_post', ['client_credentials']],
    ] as const
  ).map(([app_type, token_endpoint_auth_method, grant_types]) =>
    commands(
      `apps of the type ${app_type}`,
      '/clients',
      {
        create: {
          name: `Line ${app_type}`,
          description: 'of the command line',
          app_type,
          callbacks: [],
          allowed_origins: [],
          web_origins: [],
          allowed_logout_urls: [],
          oidc_conformant: true,
          jwt_configuration: { alg: 'RS256' },
          client_metadata: {},
          grant_types,
          ...(token_endpoint_auth_method !== undefined && { token_endpoint_auth_method }),
        },
        update: {
          name: `Line ${app_type} changed`,
          callbacks: ['http://localhost:3000/callback'],
          client_metadata: { key: 'value' },
        },
        list: `/clients?is_global=false&${PAGE}`,
        holds: PAGED,
      },
      { id: 'client_id' },
    ),
  ),
  commands('apis', '/resource-servers', {
    create: {
      name: 'Line API',
      identifier: 'https://line.example.test/api',
      allow_offline_access: false,
      scopes: [{ value: 'read:all', description: '' }],
      token_lifetime: 86400,
      signing_alg: 'RS256',
    },
    update: { name: 'Line API changed', allow_offline_access: true, token_lifetime: 3600 },
    list: `/resource-servers?${PAGE}`,
    holds: PAGED,
  }),
  {
    name: 'the command line: client-grants, test token, quickstarts setup',
    before: [api('https://line-grants.example.test/'), client('Line grants')],
    calls: [
      make(
        '/client-grants',
        { client_id: '{client}', audience: 'https://line-grants.example.test/', scope: [] },
        { grant: 'id' },
      ),
      look('/client-grants?audience=https%3A%2F%2Fline-grants.example.test%2F&client_id={client}&take=50', {
        expects: { 'client_grants.0.id': '{grant}' },
      }),
      look('/client-grants?take=50', { holds: ['"client_grants":['] }),
      ...set('/client-grants/{grant}', { scope: ['read'] }, [], 'PATCH'),
      look('/client-grants/{grant}/organizations?take=50', { expects: { organizations: [] } }),
      look('/resource-servers?include_totals=true&per_page=100', { holds: PAGED }),
      send('DELETE', '/client-grants/{grant}'),
    ],
    after: [send('DELETE', '/clients/{client}')],
  },
  {
    name: 'the command line: test login and apps session-transfer',
    before: [
      make(
        '/clients',
        {
          name: 'CLI Login Testing',
          description: 'A client used for testing logins.',
          callbacks: ['http://localhost:8484'],
          initiate_login_uri: 'https://cli.example.test',
        },
        { client: 'client_id' },
      ),
    ],
    calls: [
      ...set(
        '/clients/{client}',
        { callbacks: ['http://localhost:8484', 'http://localhost:9'] },
        [],
        'PATCH',
      ),
      send('PATCH', '/clients/{client}', {
        session_transfer: {
          can_create_session_transfer_token: true,
          allowed_authentication_methods: ['cookie', 'query'],
          enforce_device_binding: 'ip',
        },
      }),
      look('/clients/{client}', {
        expects: {
          'session_transfer.can_create_session_transfer_token': true,
          'session_transfer.allowed_authentication_methods': ['cookie', 'query'],
        },
      }),
    ],
    after: [send('DELETE', '/clients/{client}')],
  },
];

const PEOPLE: readonly ToolRun[] = [
  {
    name: 'the command line: users and users blocks',
    calls: [
      look(`/connections?name=Username-Password-Authentication&${TOTALS}`, {
        expects: { 'connections.0.strategy': 'auth0' },
      }),
      make(
        '/users',
        {
          connection: 'Username-Password-Authentication',
          email: 'line@example.test',
          name: 'Line',
          password: 'Correct-Horse-Battery-9',
        },
        { user: 'user_id' },
      ),
      look('/users?include_totals=true&page=0&per_page=100&q=email%3Aline%40example.test&sort=name%3A1', {
        expects: { 'users.0.user_id': '{user}', start: 0, limit: 100, length: 1, total: 1 },
      }),
      look('/users-by-email?email=line%40example.test', { expects: { '0.user_id': '{user}' } }),
      {
        ...send('PATCH', '/users/{user}', {
          connection: 'Username-Password-Authentication',
          name: 'Line changed',
          blocked: false,
        }),
        expects: { name: 'Line changed' },
      },
      look('/users/{user}', { expects: { 'identities.0.connection': 'Username-Password-Authentication' } }),
      // It asks by the user's ID and then, whatever was answered, by the same as an identifier.
      look('/user-blocks/{user}', { expects: { blocked_for: [] } }),
      look('/user-blocks?identifier=line%40example.test', { expects: { blocked_for: [] } }),
      look('/user-blocks?identifier={user}', { expects: { blocked_for: [] } }),
      { ...look('/user-blocks/line%40example.test'), status: 400 },
      { ...send('DELETE', '/user-blocks/line%40example.test'), status: 400 },
      send('DELETE', '/user-blocks/{user}'),
      send('DELETE', '/user-blocks?identifier=line%40example.test'),
      send('DELETE', '/user-blocks?identifier={user}'),
      look('/users/{user}/sessions', { expects: { sessions: [] } }),
      look('/users/{user}/refresh-tokens', { expects: { tokens: [] } }),
      send('DELETE', '/users/{user}/sessions'),
      send('DELETE', '/users/{user}/refresh-tokens'),
      send('POST', '/refresh-tokens/revoke', { user_id: '{user}' }),
    ],
    after: [send('DELETE', '/users/{user}')],
  },
  commands('roles', '/roles', {
    create: { name: 'Line role', description: 'of the command line' },
    update: { name: 'Line role changed', description: 'changed' },
    list: `/roles?${PAGE}`,
    holds: PAGED,
  }),
  {
    name: 'the command line: roles permissions, users roles',
    before: [
      role('Line permissions'),
      user('line-roles'),
      make(
        '/resource-servers',
        {
          name: 'Line permissions',
          identifier: 'https://line-permissions.example.test/api',
          scopes: [{ value: 'read', description: 'Read' }],
        },
        { api: 'identifier' },
      ),
    ],
    calls: [
      look('/resource-servers/{api}', { expects: { 'scopes.0.value': 'read' } }),
      send('POST', '/roles/{role}/permissions', {
        permissions: [{ resource_server_identifier: '{api}', permission_name: 'read' }],
      }),
      look(`/roles/{role}/permissions?${PAGE}`, {
        expects: {
          'permissions.0.permission_name': 'read',
          'permissions.0.resource_server_name': 'Line permissions',
          'permissions.0.description': 'Read',
          total: 1,
        },
      }),
      send('DELETE', '/roles/{role}/permissions', {
        permissions: [{ resource_server_identifier: '{api}', permission_name: 'read' }],
      }),
      send('POST', '/users/{user}/roles', { roles: ['{role}'] }),
      look(`/users/{user}/roles?${PAGE}`, { expects: { 'roles.0.id': '{role}', total: 1 } }),
      send('DELETE', '/users/{user}/roles', { roles: ['{role}'] }),
      look(`/users/{user}/roles?${TOTALS}`, { expects: { roles: [], total: 0 } }),
    ],
    after: [send('DELETE', '/roles/{role}')],
  },
  commands('orgs', '/organizations', {
    create: {
      name: 'line-org',
      display_name: 'Line',
      metadata: { key: 'value' },
      branding: { logo_url: 'https://line.example.test/logo.png', colors: { primary: '#112233' } },
    },
    update: {
      display_name: 'Line changed',
      branding: {
        logo_url: 'https://line.example.test/logo.png',
        colors: { primary: '#112233', page_background: '#445566' },
      },
      metadata: { key: 'other' },
    },
    list: `/organizations?${PAGE}`,
    holds: PAGED,
  }),
  {
    name: 'the command line: orgs members, orgs roles, orgs invitations',
    before: [
      organization('line-members'),
      user('line-member'),
      role('Line member'),
      client('Line invitations'),
      send('POST', '/organizations/{organization}/members', { members: ['{user}'] }),
      send('POST', '/organizations/{organization}/members/{user}/roles', { roles: ['{role}'] }),
      send('PATCH', '/clients/{client}', {
        initiate_login_uri: 'https://line.example.test/login',
        organization_usage: 'allow',
        app_type: 'regular_web',
      }),
    ],
    calls: [
      look(`/organizations/{organization}/members?${PAGE}`, {
        expects: { 'members.0.user_id': '{user}', total: 1 },
      }),
      look(`/organizations/{organization}/members/{user}/roles?${TOTALS}`, {
        expects: { 'roles.0.id': '{role}' },
      }),
      make(
        '/organizations/{organization}/invitations',
        {
          inviter: { name: 'Line' },
          invitee: { email: 'invited@example.test' },
          client_id: '{client}',
          ttl_sec: 604800,
          send_invitation_email: false,
          app_metadata: { key: 'value' },
          roles: ['{role}'],
        },
        { invitation: 'id' },
      ),
      look(`/organizations/{organization}/invitations?${PAGE}`, {
        expects: { 'invitations.0.id': '{invitation}', start: 0, limit: 100 },
      }),
      look('/organizations/{organization}/invitations/{invitation}', {
        expects: { 'invitee.email': 'invited@example.test', roles: ['{role}'], client_id: '{client}' },
      }),
      send('DELETE', '/organizations/{organization}/invitations/{invitation}'),
      look(`/organizations/{organization}/connections?${TOTALS}`, { expects: { connections: [] } }),
      look(`/organizations/{organization}/discovery-domains?${TOTALS}`),
    ],
    after: [send('DELETE', '/organizations/{organization}'), send('DELETE', '/clients/{client}')],
  },
];

const CODES: readonly ToolRun[] = [
  {
    name: 'the command line: actions',
    calls: [
      make(
        '/actions/actions',
        {
          name: 'Line action',
          supported_triggers: TRIGGER,
          runtime: 'node22',
          code: CODE,
          dependencies: [],
          secrets: [{ name: 'key', value: 'secret' }],
        },
        { action: 'id' },
      ),
      look('/actions/actions?per_page=100', { holds: ['"{action}"', '"per_page":100'] }),
      look('/actions/actions?per_page=50', { holds: ['"actions":['] }),
      look('/actions/actions?deployed=false&per_page=50', { holds: ['"actions":['] }),
      look('/actions/actions?per_page=50&triggerId=custom-token-exchange', { holds: ['"actions":['] }),
      look('/actions/triggers', { holds: ['"id":"post-login"'] }),
      send('PATCH', '/actions/actions/{action}', { name: 'Line changed', code: `${CODE}//` }),
      { ...send('POST', '/actions/actions/{action}/deploy'), expects: { number: 1, deployed: true } },
      look('/actions/actions/{action}', { expects: { name: 'Line changed', all_changes_deployed: true } }),
      look('/actions/actions/{action}/versions?page=0&per_page=50', {
        expects: { 'versions.0.number': 1, 'versions.0.deployed': true },
      }),
      look('/actions/triggers/post-login/bindings?per_page=50', { holds: ['"bindings":['] }),
      send('DELETE', '/actions/actions/{action}'),
    ],
  },
  {
    name: 'the command line: actions modules',
    calls: [
      make(
        '/actions/modules',
        {
          name: 'line-module',
          code: 'module.exports = {};',
          dependencies: [],
          secrets: [],
          publish: true,
        },
        { module: 'id' },
      ),
      look('/actions/modules?page=0&per_page=50', { holds: ['"modules":['] }),
      look('/actions/modules/{module}', { expects: { all_changes_published: true } }),
      send('PATCH', '/actions/modules/{module}', { code: 'module.exports = { a: 1 };' }),
      look('/actions/modules/{module}', { expects: { all_changes_published: false } }),
      { ...send('POST', '/actions/modules/{module}/versions'), expects: { version_number: 2 } },
      look('/actions/modules/{module}/versions?page=0&per_page=50', {
        expects: { 'versions.length': 2 },
      }),
    ],
    after: [send('DELETE', '/actions/modules/{module}')],
  },
  commands('rules', '/rules', {
    create: {
      name: 'Line-rule',
      script: 'function (user, context, cb) { cb(null, user, context); }',
      enabled: false,
    },
    update: { enabled: true },
    list: `/rules?${TOTALS}`,
    holds: ['"rules":['],
  }),
  {
    name: 'the command line: token-exchange',
    before: [action('Line exchange', 'custom-token-exchange')],
    calls: [
      make(
        '/token-exchange-profiles',
        {
          name: 'Line profile',
          subject_token_type: 'https://line.example.test/token',
          action_id: '{action}',
          type: 'custom_authentication',
        },
        { profile: 'id' },
      ),
      look(`/token-exchange-profiles?${TOTALS}`, { holds: ['"token_exchange_profiles":[', '"{profile}"'] }),
      ...set(
        '/token-exchange-profiles/{profile}',
        { name: 'Line changed', subject_token_type: 'https://line.example.test/other' },
        [],
        'PATCH',
      ),
      send('DELETE', '/token-exchange-profiles/{profile}'),
    ],
    after: [send('DELETE', '/actions/actions/{action}')],
  },
];

const DELIVERY: readonly ToolRun[] = [
  {
    name: 'the command line: logs list and logs tail',
    before: [client('Line logs')],
    calls: [
      {
        ...look('/logs?page=0&per_page=100&sort=date%3A-1', { holds: ['"log_id"'] }),
        keep: { log: '0.log_id' },
      },
      look('/logs/{log}', { expects: { log_id: '{log}' } }),
      look('/logs?page=0&per_page=100&q=log_id%3A%5B{log}%20TO%20*%5D&sort=date%3A-1', {
        holds: ['"log_id":"{log}"'],
      }),
      look('/logs?page=0&per_page=3&q=type%3Asapi&sort=date%3A-1', { holds: ['"type":"sapi"'] }),
    ],
    after: [send('DELETE', '/clients/{client}')],
  },
  ...(
    [
      [
        'http',
        {
          httpEndpoint: 'https://logs.example.test/',
          httpAuthorization: 'Bearer token',
          httpContentType: 'application/json',
          httpContentFormat: 'JSONARRAY',
        },
      ],
      ['datadog', { datadogRegion: 'eu', datadogApiKey: '121233123455' }],
      [
        'splunk',
        {
          splunkDomain: 'logs.example.test',
          splunkToken: '12a34ab5-c6d7-8901-23ef-456b7c89d0c1',
          splunkPort: '8088',
          splunkSecure: true,
        },
      ],
      ['sumo', { sumoSourceAddress: 'https://logs.example.test/sumo' }],
      ['eventbridge', { awsAccountId: '999999999999', awsRegion: 'eu-west-1' }],
      [
        'eventgrid',
        {
          azureSubscriptionId: 'b69a6835-57c7-4d53-b0d5-1c6ae580b6d5',
          azureResourceGroup: 'group',
          azureRegion: 'northeurope',
        },
      ],
    ] as const
  ).map(([type, sink]) =>
    commands(`logs streams ${type}`, '/log-streams', {
      create: { name: `Line ${type}`, type, sink },
      update: { name: `Line ${type} changed` },
      list: '/log-streams',
      holds: [`"name":"Line ${type}"`],
    }),
  ),
  {
    name: 'the command line: event-streams',
    calls: [
      make(
        '/event-streams',
        {
          name: 'line-stream',
          subscriptions: [{ event_type: 'user.created' }],
          destination: {
            type: 'webhook',
            configuration: {
              webhook_endpoint: 'https://events.example.test/',
              webhook_authorization: { method: 'bearer', token: 'secret' },
            },
          },
        },
        { stream: 'id' },
      ),
      look(`/event-streams?${TOTALS}`, { holds: ['"{stream}"'] }),
      send('PATCH', '/event-streams/{stream}', { name: 'line-stream-changed' }),
      look('/event-streams/{stream}', { expects: { name: 'line-stream-changed' } }),
    ],
    after: [send('DELETE', '/event-streams/{stream}')],
  },
  {
    name: 'the command line: email provider, email templates',
    calls: [
      send('POST', '/emails/provider', {
        name: 'smtp',
        enabled: true,
        default_from_address: 'line@example.test',
        credentials: {
          smtp_host: 'smtp.example.test',
          smtp_port: 587,
          smtp_user: 'line',
          smtp_pass: 'secret',
        },
      }),
      look(
        '/emails/provider?fields=name%2Cenabled%2Ccredentials%2Csettings%2Cdefault_from_address&include_fields=true',
        {
          expects: {
            name: 'smtp',
            'credentials.smtp_host': 'smtp.example.test',
            'credentials.smtp_port': 587,
          },
        },
      ),
      send('PATCH', '/emails/provider', { name: 'smtp', enabled: false }),
      look('/emails/provider', { expects: { enabled: false } }),
      send('DELETE', '/emails/provider'),
      { ...look('/email-templates/blocked_account'), status: 404 },
      send('POST', '/email-templates', {
        template: 'blocked_account',
        enabled: true,
        body: '<p>Blocked</p>',
        from: 'line@example.test',
        subject: 'Blocked',
        syntax: 'liquid',
        resultUrl: 'https://line.example.test/',
        urlLifetimeInSeconds: 432000,
      }),
      ...set(
        '/email-templates/blocked_account',
        { template: 'blocked_account', subject: 'Changed' },
        [],
        'PATCH',
      ),
    ],
  },
  {
    name: 'the command line: phone provider',
    calls: [
      make(
        '/branding/phone/providers',
        {
          name: 'twilio',
          disabled: true,
          credentials: { auth_token: 'token' },
          configuration: {
            sid: 'sid',
            mssid: 'service',
            default_from: '+15550100',
            delivery_methods: ['text'],
          },
        },
        { provider: 'id' },
      ),
      look('/branding/phone/providers', { holds: ['"{provider}"'] }),
      send('PATCH', '/branding/phone/providers/{provider}', {
        name: 'twilio',
        disabled: false,
        credentials: { auth_token: 'token' },
      }),
      look('/branding/phone/providers/{provider}', {
        expects: { disabled: false, 'configuration.sid': 'sid' },
      }),
      look('/branding/phone/templates', { holds: ['"templates":['] }),
    ],
    after: [send('DELETE', '/branding/phone/providers/{provider}')],
  },
];

const TENANT: readonly ToolRun[] = [
  {
    name: 'the command line: domains',
    calls: [
      look('/custom-domains'),
      make(
        '/custom-domains',
        {
          domain: 'line.example.test',
          type: 'auth0_managed_certs',
          tls_policy: 'recommended',
          custom_client_ip_header: 'cf-connecting-ip',
          domain_metadata: { key: 'value', other: 'value' },
        },
        { domain: 'custom_domain_id' },
      ),
      send('PATCH', '/custom-domains/{domain}', {
        tls_policy: 'recommended',
        custom_client_ip_header: 'true-client-ip',
        domain_metadata: { other: null },
      }),
      look('/custom-domains/{domain}', {
        expects: { custom_client_ip_header: 'true-client-ip', domain_metadata: { key: 'value' } },
      }),
      { ...send('POST', '/custom-domains/{domain}/verify'), expects: { domain: 'line.example.test' } },
      look('/custom-domains?q=domain%3Aline*&take=100', { expects: { 'custom_domains.length': 1 } }),
      look('/custom-domains/default', { holds: ['"domain":'] }),
    ],
    after: [send('DELETE', '/custom-domains/{domain}')],
  },
  {
    name: 'the command line: universal-login, ul templates, ul prompts and acul config',
    calls: [
      look('/branding'),
      ...set(
        '/branding',
        {
          colors: { primary: '#112233', page_background: '#445566' },
          logo_url: 'https://line.example.test/logo.png',
        },
        [],
        'PATCH',
      ),
      { ...look('/branding/templates/universal-login'), status: 404 },
      look('/prompts', { holds: ['"universal_login_experience":'] }),
      look('/clients?include_totals=true&per_page=100', { holds: ['"clients":['] }),
      { ...look('/branding/themes/default'), status: 404 },
      look('/prompts/login/custom-text/en'),
      ...set('/prompts/login/custom-text/en', { login: { title: 'Line' } }),
      send('PUT', '/prompts/login/custom-text/en', {}),
      ...set(
        '/prompts/login-id/screen/login-id/rendering',
        {
          rendering_mode: 'advanced',
          context_configuration: ['branding.settings', 'tenant.name'],
          default_head_tags_disabled: true,
          head_tags: [
            { tag: 'script', attributes: { src: 'https://line.example.test/app.js', defer: true } },
          ],
        },
        [],
        'PATCH',
      ),
      look(`/prompts/rendering?${TOTALS}`, { holds: ['"configs":['] }),
      look(`/prompts/rendering?${TOTALS}&prompt=login-id&rendering_mode=advanced&screen=login-id`, {
        expects: { 'configs.0.screen': 'login-id' },
      }),
      ...set('/prompts/login-id/screen/login-id/rendering', { rendering_mode: 'standard' }, [], 'PATCH'),
    ],
  },
  {
    name: 'the command line: attack-protection, ips, network-acl',
    calls: [
      ...set(
        '/attack-protection/bot-detection',
        { bot_detection_level: 'medium', allowlist: [] },
        [],
        'PATCH',
      ),
      ...set(
        '/attack-protection/brute-force-protection',
        { enabled: true, shields: ['block'], allowlist: [], mode: 'count_per_identifier', max_attempts: 10 },
        [],
        'PATCH',
      ),
      ...set(
        '/attack-protection/breached-password-detection',
        { enabled: false, shields: [], admin_notification_frequency: [], method: 'standard' },
        [],
        'PATCH',
      ),
      send('PATCH', '/attack-protection/suspicious-ip-throttling', {
        enabled: true,
        shields: ['block'],
        allowlist: [],
        stage: {
          'pre-login': { max_attempts: 100, rate: 864000 },
          'pre-user-registration': { max_attempts: 50, rate: 1200 },
        },
      }),
      { ...look('/anomaly/blocks/ips/192.0.2.9'), status: 404 },
      send('DELETE', '/anomaly/blocks/ips/192.0.2.9'),
      make(
        '/network-acls',
        {
          description: 'Line',
          active: false,
          priority: 9,
          rule: { action: { log: true }, match: { ipv4_cidrs: ['192.0.2.0/24'] }, scope: 'tenant' },
        },
        { acl: 'id' },
      ),
      look(`/network-acls?${TOTALS}`, { holds: ['"network_acls":[', '"{acl}"'] }),
      ...set('/network-acls/{acl}', { description: 'Line changed', priority: 8 }, [], 'PATCH'),
      send('DELETE', '/network-acls/{acl}'),
    ],
  },
  {
    name: 'the command line: tenant-settings',
    calls: [
      ...set('/tenants/settings', { customize_mfa_in_postlogin_action: true }, [], 'PATCH'),
      send('PATCH', '/tenants/settings', { flags: { enable_client_connections: true } }),
      look('/tenants/settings', { expects: { 'flags.enable_client_connections': true } }),
      send('PATCH', '/tenants/settings', { flags: { enable_client_connections: false } }),
      ...set('/tenants/settings', { customize_mfa_in_postlogin_action: false }, [], 'PATCH'),
    ],
  },
  {
    name: 'the command line: terraform generate',
    before: [
      make('/self-service-profiles', { name: 'Line self-service' }, { profile: 'id' }),
      connection('Line-generate'),
    ],
    calls: [
      look(`/connections?${PAGE}`, { holds: ['"connections":[', '"{connection}"'] }),
      look(`/forms?${TOTALS}`, { holds: ['"forms":['] }),
      look(`/flows?${TOTALS}`, { holds: ['"flows":['] }),
      look(`/flows/vault/connections?${TOTALS}`, { holds: ['"connections":['] }),
      look(`/self-service-profiles?page=0&${TOTALS}`, {
        holds: ['"self_service_profiles":[', '"{profile}"'],
      }),
      look('/self-service-profiles/{profile}/custom-text/en/get-started'),
      look('/user-attribute-profiles?take=50', { holds: ['"user_attribute_profiles":['] }),
      look('/tenants/settings'),
    ],
    after: [send('DELETE', '/self-service-profiles/{profile}'), send('DELETE', '/connections/{connection}')],
  },
];

export const CLI_RUNS: readonly ToolRun[] = [...APPLICATIONS, ...PEOPLE, ...CODES, ...DELIVERY, ...TENANT];
