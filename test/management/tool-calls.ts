// Calls of the published command-line tools for each resource, which cannot run from npm, as data: what they send, and
// what they need of the answers so that their next plan is empty. A tool takes for a change what is answered otherwise
// than it was sent, and, for members without a default of its own, what was never sent.

/** One call. Texts of the form `{name}` stand for values of earlier answers. */
export interface ToolCall {
  method: 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE';
  path: string;
  body?: unknown;
  /** Values of the answer that later calls use: the name, and the path in the answer. */
  keep?: Readonly<Record<string, string>>;
  /** Paths of the answer with the values that the tool expects. */
  expects?: Readonly<Record<string, unknown>>;
  /** Paths that the answer must not have. */
  lacks?: readonly string[];
  /** Texts that the answer contains, for what is a list. */
  holds?: readonly string[];
  /** The status of a refusal that the tool expects. Default: success. */
  status?: number;
}

/** What a tool does with one resource. */
export interface ToolRun {
  name: string;
  /** Calls that are needed before. */
  before?: readonly ToolCall[];
  calls: readonly ToolCall[];
  /** The path where the tool reads the resource after each call. Without it, readings are among the calls. */
  read?: string;
  /** What each reading must and must not have, beside everything that was sent. */
  expects?: Readonly<Record<string, unknown>>;
  lacks?: readonly string[];
  /** Paths that are sent and, being secrets or other names of a member, not read back. */
  unread?: readonly string[];
  /** A text that each reading contains, for what is a list. */
  holds?: string;
  /** Whether what is read is the body itself, and not an object with its members. */
  isWhole?: boolean;
  /** Part of a warning that the server's log must have. */
  warns?: string;
  /** Calls that remove what was made; then a further reading has nothing of it. */
  after?: readonly ToolCall[];
}

const client = (name: string): ToolCall => ({
  method: 'POST',
  path: '/clients',
  body: { name, app_type: 'non_interactive' },
  keep: { client: 'client_id' },
});
const connection = (name: string, strategy: string): ToolCall => ({
  method: 'POST',
  path: '/connections',
  body: { name, strategy, options: {} },
  keep: { connection: 'id' },
});
const organization = (name: string): ToolCall => ({
  method: 'POST',
  path: '/organizations',
  body: { name, display_name: name },
  keep: { organization: 'id' },
});

const OIDC_OPTIONS = {
  client_id: '1234567',
  client_secret: 'secret',
  type: 'back_channel',
  issuer: 'https://idp.example.test',
  authorization_endpoint: 'https://idp.example.test/authorize',
  token_endpoint: 'https://idp.example.test/token',
  jwks_uri: 'https://idp.example.test/jwks',
  scope: 'openid profile email',
};

/** Calls that stopped an import of a whole tenant. */
const IMPORTS: readonly ToolRun[] = [
  {
    name: 'message types of the phone factor, cleared before the factor is switched off',
    calls: [
      { method: 'PUT', path: '/guardian/factors/phone/message-types', body: { message_types: ['sms'] } },
      { method: 'PUT', path: '/guardian/factors/phone/message-types', body: { message_types: [] } },
    ],
    read: '/guardian/factors/phone/message-types',
  },
  {
    name: 'security keys that must verify their users',
    calls: ['required', 'discouraged', 'preferred'].map((userVerification) => ({
      method: 'PUT',
      path: '/guardian/factors/webauthn-roaming/settings',
      body: { userVerification, overrideRelyingParty: false },
    })),
    read: '/guardian/factors/webauthn-roaming/settings',
  },
  {
    name: 'a client grant for the Management API with scopes of the hosted service alone',
    before: [client('Grants')],
    calls: [
      {
        method: 'POST',
        path: '/client-grants',
        body: {
          client_id: '{client}',
          audience: '{management}',
          scope: ['read:users', 'read:tenant_invitations', 'create:shields'],
        },
        keep: { grant: 'id' },
      },
      { method: 'PATCH', path: '/client-grants/{grant}', body: { scope: ['read:shields'] } },
    ],
    read: '/client-grants/{grant}',
  },
  {
    name: 'colours of the older login page',
    calls: [
      {
        method: 'PATCH',
        path: '/tenants/settings',
        body: { universal_login: { colors: { primary: '#2A2E35', page_background: '#FF4F40' } } },
      },
    ],
    read: '/tenants/settings',
  },
  {
    name: 'an application whose transferred sessions are bound to a network',
    calls: [
      {
        method: 'POST',
        path: '/clients',
        body: {
          name: 'Transfers',
          app_type: 'native',
          session_transfer: {
            can_create_session_transfer_token: true,
            enforce_device_binding: 'asn',
            delegation: { allow_delegated_access: true, enforce_device_binding: 'asn' },
          },
        },
        keep: { transfers: 'client_id' },
      },
    ],
    read: '/clients/{transfers}',
  },
  {
    name: 'an OpenID connection with each algorithm of DPoP proofs',
    calls: [
      {
        method: 'POST',
        path: '/connections',
        body: { name: 'Proofs', strategy: 'oidc', options: { ...OIDC_OPTIONS, dpop_signing_alg: 'ES256' } },
        keep: { proofs: 'id' },
      },
      ...['ES384', 'ES512', 'Ed25519'].map(
        (dpop_signing_alg): ToolCall => ({
          method: 'PATCH',
          path: '/connections/{proofs}',
          body: { options: { ...OIDC_OPTIONS, dpop_signing_alg } },
        }),
      ),
    ],
    read: '/connections/{proofs}',
  },
  {
    name: 'a form with a name alone',
    calls: [
      {
        method: 'POST',
        path: '/forms',
        body: { name: 'Only a name', languages: {}, messages: {}, ending: { resume_flow: true } },
        keep: { form: 'id' },
        lacks: ['languages', 'messages'],
      },
      { method: 'PATCH', path: '/forms/{form}', body: { nodes: [], languages: {} } },
    ],
    read: '/forms/{form}',
    expects: { 'ending.resume_flow': true },
    unread: ['languages', 'messages', 'nodes'],
    lacks: ['languages', 'messages', 'nodes', 'start', 'style', 'translations'],
  },
  {
    name: 'a connection of an organization with sign-ups, whatever its kind and membership',
    before: [organization('sign-ups'), connection('Sign-ups', 'email')],
    calls: [
      {
        method: 'POST',
        path: '/organizations/{organization}/connections',
        body: { connection_id: '{connection}', is_signup_enabled: true, is_enabled: true },
      },
      {
        method: 'PATCH',
        path: '/organizations/{organization}/connections/{connection}',
        body: { assign_membership_on_login: false, is_signup_enabled: true, show_as_button: false },
      },
    ],
    read: '/organizations/{organization}/connections/{connection}',
  },
];

/** Members that a client has, if a tool did not set them. */
const USUAL_TRANSFER = {
  'session_transfer.can_create_session_transfer_token': false,
  'session_transfer.enforce_device_binding': 'ip',
  'session_transfer.allowed_authentication_methods': [],
  'session_transfer.allow_refresh_token': false,
  'session_transfer.enforce_cascade_revocation': true,
  'session_transfer.enforce_online_refresh_tokens': true,
};

/** Resources whose next plan was not empty. */
const PLANS: readonly ToolRun[] = [
  {
    name: 'an application without a type',
    calls: [
      {
        method: 'POST',
        path: '/clients',
        body: { name: 'No type' },
        keep: { untyped: 'client_id' },
        lacks: ['app_type'],
      },
      { method: 'PATCH', path: '/clients/{untyped}', body: { description: 'Still none' } },
    ],
    read: '/clients/{untyped}',
    lacks: ['app_type', 'session_transfer', 'addons', 'mobile', 'oidc_logout', 'initiate_login_uri'],
    expects: { is_token_endpoint_ip_header_trusted: false, is_first_party: true },
  },
  {
    name: 'refresh tokens that end, and those that do not',
    calls: [
      {
        method: 'POST',
        path: '/clients',
        body: {
          name: 'Refreshing',
          app_type: 'native',
          refresh_token: { rotation_type: 'non-rotating', expiration_type: 'non-expiring' },
        },
        keep: { refreshing: 'client_id' },
        expects: {
          'refresh_token.infinite_token_lifetime': true,
          'refresh_token.infinite_idle_token_lifetime': true,
        },
      },
      {
        method: 'PATCH',
        path: '/clients/{refreshing}',
        body: {
          refresh_token: { rotation_type: 'rotating', expiration_type: 'expiring', token_lifetime: 3600 },
        },
        expects: {
          'refresh_token.infinite_token_lifetime': false,
          'refresh_token.infinite_idle_token_lifetime': false,
        },
      },
    ],
    read: '/clients/{refreshing}',
  },
  {
    name: 'an application that takes sessions over, with what applies unless it is set',
    calls: [
      {
        method: 'POST',
        path: '/clients',
        body: {
          name: 'Takes over',
          app_type: 'native',
          session_transfer: { enforce_cascade_revocation: true },
        },
        keep: { takes: 'client_id' },
      },
    ],
    read: '/clients/{takes}',
    expects: USUAL_TRANSFER,
    lacks: ['session_transfer.delegation'],
  },
  {
    name: 'an API that says nothing about consent and access',
    calls: [
      {
        method: 'POST',
        path: '/resource-servers',
        body: { name: 'Plain', identifier: 'https://plain.example.test/' },
        keep: { api: 'id' },
      },
      {
        method: 'PATCH',
        path: '/resource-servers/{api}',
        body: { scopes: [{ value: 'read:things', description: 'Read' }] },
      },
    ],
    read: '/resource-servers/{api}',
    expects: {
      skip_consent_for_verifiable_first_party_clients: false,
      subject_type_authorization: {
        client: { policy: 'require_client_grant' },
        user: { policy: 'allow_all' },
      },
    },
  },
  {
    name: 'an API that skips the consent of first-party applications',
    calls: [
      {
        method: 'POST',
        path: '/resource-servers',
        body: {
          name: 'Skips',
          identifier: 'https://skips.example.test/',
          skip_consent_for_verifiable_first_party_clients: true,
          subject_type_authorization: {
            user: { policy: 'require_client_grant' },
            client: { policy: 'deny_all' },
          },
        },
        keep: { api: 'id' },
      },
    ],
    read: '/resource-servers/{api}',
  },
  {
    name: 'a database with what applies unless it is set',
    calls: [
      {
        method: 'POST',
        path: '/connections',
        body: {
          name: 'Usual-database',
          strategy: 'auth0',
          options: { authentication_methods: { passkey: { enabled: false }, password: { enabled: true } } },
        },
        keep: { database: 'id' },
      },
    ],
    read: '/connections/{database}',
    expects: {
      'options.authentication_methods.password.api_behavior': 'required',
      'options.authentication_methods.password.signup_behavior': 'allow',
      'options.authentication_methods.email_otp': { enabled: false },
      'options.mfa': { active: true, return_enroll_settings: true },
      'options.strategy_version': 2,
      'options.passkey_options': {
        challenge_ui: 'both',
        progressive_enrollment_enabled: true,
        local_enrollment_enabled: true,
      },
    },
    lacks: ['options.configuration'],
  },
  {
    name: 'a workforce connection of Google',
    calls: [
      {
        method: 'POST',
        path: '/connections',
        body: {
          name: 'Workforce',
          strategy: 'google-apps',
          options: {
            client_id: 'id',
            client_secret: 'secret',
            domain: 'example.test',
            api_enable_users: true,
          },
        },
        keep: { workforce: 'id' },
      },
    ],
    read: '/connections/{workforce}',
    expects: {
      'options.email': true,
      'options.profile': true,
      'options.scope': ['email', 'profile'],
      'options.handle_login_from_social': true,
    },
  },
  {
    name: 'a connection of Salesforce',
    calls: [
      {
        method: 'POST',
        path: '/connections',
        body: {
          name: 'Sales',
          strategy: 'salesforce',
          options: { client_id: 'id', client_secret: 'secret' },
        },
        keep: { sales: 'id' },
      },
    ],
    read: '/connections/{sales}',
    expects: { 'options.scope': [] },
    lacks: ['options.email', 'options.profile'],
  },
  {
    name: 'an OpenID connection with what applies unless it is set',
    calls: [
      {
        method: 'POST',
        path: '/connections',
        body: { name: 'Usual-openid', strategy: 'oidc', options: OIDC_OPTIONS },
        keep: { openid: 'id' },
      },
    ],
    read: '/connections/{openid}',
    expects: {
      'options.schema_version': 'oidc-V4',
      'options.attribute_map.mapping_mode': 'bind_all',
      'options.connection_settings.pkce': 'auto',
    },
  },
  {
    name: 'a log stream',
    calls: [
      {
        method: 'POST',
        path: '/log-streams',
        body: {
          name: 'Stream',
          type: 'http',
          sink: {
            httpEndpoint: 'https://logs.example.test/',
            httpContentType: 'application/json',
            httpContentFormat: 'JSONLINES',
          },
        },
        keep: { stream: 'id' },
      },
      { method: 'PATCH', path: '/log-streams/{stream}', body: { status: 'paused' } },
    ],
    read: '/log-streams/{stream}',
    expects: { isPriority: false },
    lacks: ['pii_config', 'filters'],
  },
  {
    name: 'settings of the tenant',
    calls: [
      {
        method: 'PATCH',
        path: '/tenants/settings',
        body: { friendly_name: 'Planned', flags: { enable_client_connections: false } },
      },
    ],
    read: '/tenants/settings',
    expects: { sandbox_version: '22', sandbox_versions_available: ['22'] },
  },
];

export const TOOL_RUNS: readonly ToolRun[] = [...IMPORTS, ...PLANS];
