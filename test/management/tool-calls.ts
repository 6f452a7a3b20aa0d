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
}

/** What a tool does with one resource. */
export interface ToolRun {
  name: string;
  /** Calls that are needed before. */
  before?: readonly ToolCall[];
  calls: readonly ToolCall[];
  /** The path where the tool reads the resource after each call. */
  read: string;
  /** What each reading must and must not have, beside everything that was sent. */
  expects?: Readonly<Record<string, unknown>>;
  lacks?: readonly string[];
  /** Paths that are sent and, being secrets or other names of a member, not read back. */
  unread?: readonly string[];
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

export const TOOL_RUNS: readonly ToolRun[] = [...IMPORTS];
