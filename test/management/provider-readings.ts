// What the published Terraform provider sets of second factors, and what its data sources read that no resource reads.
import {
  api,
  client,
  connection,
  make,
  organization,
  permission,
  plan,
  role,
  user,
} from './provider-calls.ts';
import type { ToolCall, ToolRun } from './tool-calls.ts';

/** A reading, and what its answer must have. */
export const look = (path: string, more: Omit<ToolCall, 'method' | 'path'> = {}): ToolCall => ({
  method: 'GET',
  path,
  ...more,
});
const put = (path: string, body: unknown): ToolCall => ({ method: 'PUT', path, body });

/** A second factor that is switched on, set and read, and switched off again. */
const factor = (name: string, path: string, settings: readonly ToolCall[] = []): ToolRun => ({
  name: `auth0_guardian: ${name}`,
  calls: [
    put(`/guardian/factors/${path}`, { enabled: true }),
    look('/guardian/factors', { holds: [`{"name":"${path}","enabled":true,"trial_expired":false}`] }),
    ...settings,
    put(`/guardian/factors/${path}`, { enabled: false }),
    look('/guardian/factors', { holds: [`{"name":"${path}","enabled":false,"trial_expired":false}`] }),
  ],
});

/** Settings, and the same as they are read. @param secret members that are not read back */
export const set = (
  path: string,
  body: Readonly<Record<string, unknown>>,
  secret: readonly string[] = [],
  method: ToolCall['method'] = 'PUT',
): ToolCall[] => {
  const shown = Object.fromEntries(
    Object.entries(body).filter(([name, value]) => value !== null && !secret.includes(name)),
  );
  return [{ method, path, body }, look(path, { expects: shown, lacks: secret })];
};

const PUSH = '/guardian/factors/push-notification';
const TEMPLATES = { enrollment_message: 'Enroll: {{code}}', verification_message: 'Code: {{code}}' };

export const PROVIDER_FACTORS: readonly ToolRun[] = [
  factor('email', 'email'),
  factor('otp', 'otp'),
  factor('recovery codes', 'recovery-code'),
  factor('phone', 'sms', [
    // What the provider asks before it decides whether it sets the older accounts.
    ...set('/tenants/settings', { phone_consolidated_experience: false }, [], 'PATCH'),
    ...set('/guardian/factors/phone/selected-provider', { provider: 'twilio' }),
    ...set('/guardian/factors/sms/providers/twilio', {
      from: '+15550100',
      messaging_service_sid: 'service',
      auth_token: 'token',
      sid: 'sid',
    }),
    ...set('/guardian/factors/sms/templates', TEMPLATES),
    ...set('/guardian/factors/phone/selected-provider', { provider: 'phone-message-hook' }),
    ...set('/guardian/factors/phone/message-types', { message_types: ['voice'] }),
    ...set('/guardian/factors/phone/message-types', { message_types: ['sms', 'voice'] }),
    ...set('/tenants/settings', { phone_consolidated_experience: true }, [], 'PATCH'),
  ]),
  factor('security keys', 'webauthn-roaming', [
    ...set('/guardian/factors/webauthn-roaming/settings', { userVerification: 'required' }),
    look('/guardian/factors/webauthn-roaming/settings', { expects: { overrideRelyingParty: false } }),
  ]),
  factor('biometrics of devices', 'webauthn-platform', [
    ...set('/guardian/factors/webauthn-platform/settings', { overrideRelyingParty: false }),
  ]),
  factor('Duo', 'duo', [
    ...set('/guardian/factors/duo/settings', { ikey: 'key', skey: 'secret', host: 'duo.example.test' }),
  ]),
  factor('push', 'push-notification', [
    ...set(`${PUSH}/selected-provider`, { provider: 'guardian' }),
    ...set(
      '/prompts/mfa-push',
      {
        app_name: 'Provider app',
        apple_app_link: 'https://apps.example.test/apple',
        google_app_link: 'https://apps.example.test/google',
      },
      [],
      'PATCH',
    ),
    ...set(`${PUSH}/selected-provider`, { provider: 'sns' }),
    ...set(
      `${PUSH}/providers/sns`,
      {
        aws_access_key_id: 'access',
        aws_secret_access_key: 'secret',
        aws_region: 'us-west-1',
        sns_apns_platform_application_arn: 'arn:apns',
        sns_gcm_platform_application_arn: 'arn:gcm',
      },
      ['aws_secret_access_key'],
    ),
    ...set(`${PUSH}/selected-provider`, { provider: 'direct' }),
    ...set(`${PUSH}/providers/apns`, { sandbox: false, bundle_id: 'test.example.app', p12: 'MIIP' }, ['p12']),
    put(`${PUSH}/providers/fcm`, { server_key: 'key' }),
  ]),
];

const UNIVERSAL =
  '<!DOCTYPE html><html><head>{%- auth0:head -%}</head><body>{%- auth0:widget -%}</body></html>';
const READ_SCIM = ['get:users', 'post:users'];
const OPENID = {
  client_id: 'id',
  type: 'front_channel',
  issuer: 'https://idp.example.test',
  authorization_endpoint: 'https://idp.example.test/authorize',
  token_endpoint: 'https://idp.example.test/token',
  jwks_uri: 'https://idp.example.test/jwks',
  token_endpoint_auth_method: 'private_key_jwt',
  token_endpoint_auth_signing_alg: 'RS256',
};
const GROUPS = '/connections/{connection}/directory-provisioning/synchronized-groups';
const SCOPED = '/resource-servers/{identifier}';
const scoped = (identifier: string) =>
  make('/resource-servers', { name: identifier, identifier }, { identifier: 'identifier', api: 'id' });

export const PROVIDER_FURTHER: readonly ToolRun[] = [
  {
    name: 'auth0_custom_domain_verification, auth0_custom_domain_default',
    calls: [
      {
        method: 'POST',
        path: '/custom-domains',
        body: { domain: 'verified.example.test', type: 'self_managed_certs' },
        keep: { domain: 'custom_domain_id' },
        expects: { status: 'pending_verification' },
      },
      { method: 'POST', path: '/custom-domains/{domain}/verify', expects: { status: 'ready' } },
      look('/custom-domains/{domain}', { expects: { status: 'ready' }, lacks: ['cname_api_key'] }),
      { method: 'PATCH', path: '/custom-domains/default', body: { domain: 'verified.example.test' } },
      look('/custom-domains/default', { expects: { domain: 'verified.example.test', is_default: true } }),
      look('/custom-domains?q=domain%3Averified*&take=100', {
        expects: { 'custom_domains.length': 1, 'custom_domains.0.domain': 'verified.example.test' },
      }),
    ],
    after: [{ method: 'DELETE', path: '/custom-domains/{domain}' }],
  },
  {
    name: 'auth0_connection_keys',
    before: [
      make(
        '/connections',
        { name: 'Provider-keys', strategy: 'oidc', options: OPENID },
        { connection: 'id' },
      ),
    ],
    calls: [
      look('/connections/{connection}/keys', { expects: { '0.algorithm': 'RS256', '0.key_use': 'signing' } }),
      {
        method: 'POST',
        path: '/connections/{connection}/keys/rotate',
        keep: { kid: 'kid' },
        expects: { next: true, algorithm: 'RS256', key_use: 'signing', subject_dn: '/CN=localhost' },
      },
      look('/connections/{connection}/keys', { holds: ['"kid":"{kid}"'] }),
    ],
    after: [{ method: 'DELETE', path: '/connections/{connection}' }],
  },
  {
    name: 'auth0_connection_directory_synchronized_groups',
    before: [connection('Provider-groups', 'google-apps')],
    calls: [
      {
        method: 'POST',
        path: '/connections/{connection}/directory-provisioning',
        body: { synchronize_groups: 'selected' },
        expects: { synchronize_groups: 'selected', synchronize_automatically: false },
      },
      put(GROUPS, {
        groups: [
          { id: 'one', name: 'Engineering', email: 'one@example.test', direct_members_count: 7 },
          { id: 'two' },
        ],
      }),
      look(`${GROUPS}?take=50`, {
        expects: {
          groups: [
            { id: 'one', name: 'Engineering', email: 'one@example.test', direct_members_count: 7 },
            { id: 'two' },
          ],
        },
      }),
      { method: 'DELETE', path: GROUPS, body: { groups: [{ id: 'one' }] } },
      look(`${GROUPS}?take=50`, { expects: { groups: [{ id: 'two' }] } }),
      { method: 'POST', path: GROUPS, body: { groups: [{ id: 'one' }] } },
      look(`${GROUPS}?q=name%3Anone*&take=50`, { expects: { groups: [] } }),
      put(GROUPS, { groups: [] }),
      look(`${GROUPS}?take=50`, { expects: { groups: [] } }),
      look('/connections/{connection}/directory-provisioning/default-mapping', {
        holds: ['{"idp":"primaryEmail","auth0":"email"}'],
      }),
    ],
    after: [
      { method: 'DELETE', path: '/connections/{connection}/directory-provisioning' },
      { method: 'DELETE', path: '/connections/{connection}' },
    ],
  },
  {
    name: 'auth0_connection_scim_token',
    before: [
      connection('Provider-scim-token', 'okta'),
      { method: 'POST', path: '/connections/{connection}/scim-configuration' },
    ],
    calls: [
      make(
        '/connections/{connection}/scim-configuration/tokens',
        { scopes: READ_SCIM },
        { token: 'token_id' },
      ),
      look('/connections/{connection}/scim-configuration/tokens', {
        expects: { length: 1, '0.token_id': '{token}', '0.scopes': READ_SCIM },
        lacks: ['0.token'],
      }),
      look('/connections/{connection}/scim-configuration/default-mapping'),
      { method: 'DELETE', path: '/connections/{connection}/scim-configuration/tokens/{token}' },
      look('/connections/{connection}/scim-configuration/tokens', { expects: { length: 0 } }),
    ],
    after: [{ method: 'DELETE', path: '/connections/{connection}' }],
  },
  {
    name: 'auth0_self_service_profile_custom_text',
    before: [make('/self-service-profiles', { name: 'Provider texts' }, { profile: 'id' })],
    calls: [{}, { introduction: 'Welcome' }, { introduction: 'Changed' }, {}].map(
      (body): ToolCall => put('/self-service-profiles/{profile}/custom-text/en/get-started', body),
    ),
    read: '/self-service-profiles/{profile}/custom-text/en/get-started',
    isWhole: true,
  },
  {
    name: 'auth0_resource_server_scope, auth0_resource_server_scopes',
    before: [scoped('https://scoped.example.test/api')],
    calls: [
      [{ value: 'read:posts', description: 'Read' }],
      [],
      [{ value: 'read:posts', description: 'Read all' }],
      [
        { value: 'read:posts', description: 'Read all' },
        { value: 'write:posts', description: '' },
      ],
      [{ value: 'read:posts', description: 'Read all' }, { value: 'write:posts' }],
    ].map((scopes): ToolCall => ({ method: 'PATCH', path: SCOPED, body: { scopes } })),
    read: SCOPED,
    after: [{ method: 'DELETE', path: '/resource-servers/{api}' }],
  },
  plan('auth0_phone_notification_template', '/branding/phone/templates', {
    create: { type: 'change_password', disabled: false, content: { body: { text: 'Changed' } } },
    changes: [
      { disabled: true, content: { syntax: 'liquid', from: '+15550100', body: { text: 'Changed' } } },
    ],
  }),
  {
    name: 'auth0_client_cimd',
    before: [make('/clients/cimd/register', { external_client_id: '{document}' }, { agent: 'client_id' })],
    calls: [
      look('/clients/{agent}', {
        expects: {
          name: 'Agent',
          is_first_party: false,
          external_client_id: '{document}',
          external_metadata_type: 'cimd',
          external_metadata_created_by: 'admin',
          oidc_conformant: true,
          token_endpoint_auth_method: 'none',
          grant_types: ['authorization_code'],
          'jwt_configuration.alg': 'RS256',
        },
      }),
      {
        method: 'POST',
        path: '/clients/cimd/preview',
        body: { external_client_id: '{document}' },
        expects: { 'validation.valid': true, client_id: '{agent}' },
      },
      ...set(
        '/clients/{agent}',
        {
          description: 'Provider agent',
          allowed_origins: ['https://agent.example.test'],
          web_origins: ['https://agent.example.test'],
          grant_types: ['authorization_code', 'refresh_token'],
          jwt_configuration: { lifetime_in_seconds: 7200, alg: 'RS256', secret_encoded: false },
          app_type: 'native',
          oidc_conformant: true,
          refresh_token: {
            rotation_type: 'rotating',
            expiration_type: 'expiring',
            leeway: 30,
            token_lifetime: 2592000,
            infinite_token_lifetime: false,
            idle_token_lifetime: 1296000,
            infinite_idle_token_lifetime: false,
          },
        },
        [],
        'PATCH',
      ),
      ...set('/clients/{agent}', { description: null, allowed_origins: [] }, [], 'PATCH'),
      make('/clients/cimd/register', { external_client_id: '{document}' }, {}),
    ],
    after: [{ method: 'DELETE', path: '/clients/{agent}' }],
  },
];

const DATA = 'https://data.example.test/api';
const people = [
  organization('provider-data'),
  user('provider-data'),
  role('Provider data'),
  client('Provider data'),
  api(DATA),
  connection('Provider-data'),
];

/** What data sources read, beside what resources read. Lists are asked for in the provider's ways of paging. */
export const PROVIDER_DATA: readonly ToolRun[] = [
  {
    name: 'data sources of organizations, roles and users',
    before: [
      ...people,
      { method: 'POST', path: '/organizations/{organization}/members', body: { members: ['{user}'] } },
      { method: 'POST', path: '/users/{user}/roles', body: { roles: ['{role}'] } },
      { method: 'POST', path: '/roles/{role}/permissions', body: { permissions: permission(DATA) } },
      { method: 'POST', path: '/users/{user}/permissions', body: { permissions: permission(DATA) } },
      {
        method: 'POST',
        path: '/organizations/{organization}/connections',
        body: { connection_id: '{connection}', is_enabled: true },
      },
      make(
        '/roles',
        { name: 'Provider data role', type: 'organization', owner_id: '{organization}' },
        { own: 'id' },
      ),
      {
        method: 'POST',
        path: '/organizations/{organization}/members/{user}/roles',
        body: { roles: ['{role}'] },
      },
      {
        method: 'POST',
        path: '/organizations/{organization}/clients',
        body: { clients: [{ client_id: '{client}', use_for_member_access: true }] },
      },
    ],
    calls: [
      look('/organizations/name/provider-data', { expects: { id: '{organization}' } }),
      look('/organizations?include_totals=true&take=50', { holds: ['"{organization}"'] }),
      look('/organizations?include_client_association_for={client}&include_totals=true&take=50', {
        holds: ['"{organization}"'],
      }),
      look('/organizations/{organization}/clients/{client}', {
        expects: { client_id: '{client}', use_for_member_access: true, 'client.name': 'Provider data' },
      }),
      look('/organizations/{organization}/clients?take=50', {
        expects: { 'clients.0.client_id': '{client}' },
      }),
      look(
        '/organizations/{organization}/members?fields=user_id&include_fields=true&include_totals=true&per_page=50&take=100',
        { expects: { members: [{ user_id: '{user}' }] } },
      ),
      look(
        '/organizations/{organization}/connections?include_totals=true&is_enabled=true&page=0&per_page=50',
        {
          expects: {
            'connections.0.connection_id': '{connection}',
            'connections.0.is_signup_enabled': false,
            'connections.0.assign_membership_on_login': false,
            'connections.0.show_as_button': true,
            'connections.0.connection.name': 'Provider-data',
          },
        },
      ),
      look(
        '/organizations/{organization}/connections?include_totals=true&is_enabled=true&page=1&per_page=50',
        { expects: { connections: [], start: 50, limit: 50, total: 1 } },
      ),
      look('/organizations/{organization}/roles/{role}/members?include_fields=true&take=50', {
        expects: { 'members.0.user_id': '{user}' },
      }),
      look('/organizations/{organization}/roles/{role}/groups?take=50', { expects: { groups: [] } }),
      look(
        '/roles?include_totals=true&name_filter=Provider+data+role&owner_id={organization}&page=0&per_page=100&type=organization',
        { expects: { 'roles.0.id': '{own}', total: 1, start: 0, limit: 100 } },
      ),
      look('/roles?include_totals=true&name_filter=no-such-role&page=0&per_page=100', {
        expects: { roles: [], start: 0, limit: 100, total: 0 },
      }),
      look('/roles/{role}/users?include_totals=true&per_page=50&take=100', {
        expects: { 'users.0.user_id': '{user}' },
      }),
      look('/roles/{role}/permissions?include_totals=true&page=0&per_page=100', {
        expects: {
          'permissions.0.resource_server_identifier': DATA,
          'permissions.0.resource_server_name': DATA,
        },
      }),
      look('/users/{user}/roles?include_totals=true&page=0&per_page=100', {
        expects: { 'roles.0.id': '{role}' },
      }),
      look('/users/{user}/permissions?include_totals=true&page=0&per_page=100', {
        expects: { 'permissions.0.permission_name': 'read' },
      }),
      look('/users/{user}/organizations?include_totals=true&page=0&per_page=50', {
        expects: { 'organizations.0.id': '{organization}', total: 1 },
      }),
      look('/users/{user}/organizations?include_totals=true&page=1&per_page=50', {
        expects: { organizations: [], start: 50, limit: 50 },
      }),
      look('/users/{user}/connected-accounts?take=50', { expects: { connected_accounts: [] } }),
      look('/users?include_totals=true&per_page=50&q=email%3Aprovider-data%40example.test', {
        expects: { 'users.0.user_id': '{user}', start: 0, limit: 50, length: 1 },
      }),
    ],
    after: [{ method: 'DELETE', path: '/organizations/{organization}' }],
  },
  {
    name: 'data sources of applications, APIs and grants',
    before: [
      client('Provider source'),
      api('https://source.example.test/api'),
      organization('provider-source'),
      make(
        '/client-grants',
        {
          client_id: '{client}',
          audience: 'https://source.example.test/api',
          scope: [],
          organization_usage: 'allow',
        },
        { grant: 'id' },
      ),
      { method: 'POST', path: '/organizations/{organization}/client-grants', body: { grant_id: '{grant}' } },
    ],
    calls: [
      look('/clients?include_totals=true&page=0&per_page=100', { holds: ['"{client}"'] }),
      look('/clients?app_type=non_interactive&include_totals=true&page=0&per_page=100', {
        holds: ['"{client}"'],
        expects: { start: 0, limit: 100 },
      }),
      look('/clients?include_totals=true&is_first_party=true&page=0&per_page=100', { holds: ['"{client}"'] }),
      look('/clients?fields=client_id&include_fields=true&include_totals=true&is_global=true&per_page=50', {
        expects: { start: 0, limit: 50 },
      }),
      look('/client-grants?client_id={client}&include_totals=true&per_page=50&take=100', {
        expects: { 'client_grants.0.id': '{grant}' },
      }),
      look(
        '/client-grants?audience=https%3A%2F%2Fsource.example.test%2Fapi&client_id={client}&include_totals=true&per_page=50',
        { expects: { 'client_grants.0.id': '{grant}', total: 1, start: 0, limit: 50 } },
      ),
      look('/client-grants/{grant}/organizations?include_totals=true&take=50', {
        expects: { 'organizations.0.id': '{organization}' },
      }),
      look('/resource-servers/{api}', { expects: { identifier: 'https://source.example.test/api' } }),
      look('/connections?include_totals=true&per_page=50&take=100', { holds: ['"connections":['] }),
      look('/connections?include_totals=true&name=Username-Password-Authentication&per_page=50', {
        expects: { 'connections.length': 1, 'connections.0.strategy': 'auth0' },
      }),
    ],
  },
  {
    name: 'data sources of actions and their modules',
    before: [
      make(
        '/actions/modules',
        { name: 'provider-data-module', code: 'module.exports = {};' },
        { module: 'id' },
      ),
      make('/actions/modules/{module}/versions', {}, { version: 'id' }),
      make(
        '/actions/actions',
        {
          name: 'Provider data',
          supported_triggers: [{ id: 'post-login', version: 'v3' }],
          code: 'exports.onExecutePostLogin = async () => {};',
          modules: [{ module_id: '{module}', module_version_id: '{version}' }],
        },
        { action: 'id' },
      ),
    ],
    calls: [
      look('/actions/actions?actionName=Provider+data&per_page=50', {
        expects: { 'actions.length': 1, 'actions.0.id': '{action}', per_page: 50 },
      }),
      look('/actions/actions?actionName=no-such-action&per_page=50', {
        expects: { actions: [], per_page: 50 },
      }),
      look('/actions/modules/{module}/versions?page=0&per_page=50', {
        expects: { 'versions.0.id': '{version}', 'versions.0.version_number': 1 },
      }),
      look('/actions/modules/{module}/versions?page=1&per_page=50', { expects: { versions: [] } }),
      look('/actions/modules/{module}/versions/{version}', {
        expects: { module_id: '{module}', version_number: 1, code: 'module.exports = {};' },
      }),
      look('/actions/modules/{module}/actions?page=0&per_page=50', {
        expects: {
          'actions.0.action_id': '{action}',
          'actions.0.action_name': 'Provider data',
          'actions.0.module_version_id': '{version}',
          'actions.0.module_version_number': 1,
          total: 1,
        },
      }),
      look('/actions/modules/{module}/actions?page=1&per_page=50', { expects: { actions: [] } }),
    ],
    after: [{ method: 'DELETE', path: '/actions/actions/{action}' }],
  },
  {
    name: 'data sources of appearance, keys and the tenant',
    calls: [
      look('/branding/phone/providers', { holds: ['"providers":['] }),
      { method: 'PUT', path: '/branding/templates/universal-login', body: { template: UNIVERSAL } },
      look('/branding/templates/universal-login', { expects: { body: UNIVERSAL } }),
      { method: 'DELETE', path: '/branding/templates/universal-login' },
      look('/prompts/login-passwordless/partials'),
      look('/prompts/login-passwordless/screen/login-passwordless-email-code/rendering', {
        expects: { prompt: 'login-passwordless', screen: 'login-passwordless-email-code' },
      }),
      look('/keys/signing', { expects: { '0.current': true } }),
      look('/user-attribute-profiles', { holds: ['"user_attribute_profiles":['] }),
      look('/rate-limit-policies?resource=oauth_authentication_api&take=50', {
        holds: ['"rate_limit_policies":['],
      }),
      look('/custom-domains'),
    ],
  },
];

export const PROVIDER_READINGS: readonly ToolRun[] = [...PROVIDER_FURTHER, ...PROVIDER_DATA];
