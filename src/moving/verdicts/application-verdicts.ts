// What becomes of applications, APIs, client grants and roles.
import { absent, differently, type Item, inForce, type Rules } from './verdict.ts';

/** The grants of endpoints that the hosted service no longer gives new tenants. */
const LEGACY_GRANTS = 'http://auth0.com/oauth/legacy/';

const isTrue = (value: unknown) => value === true;
const isFalse = (value: unknown) => value === false;
const has = (value: unknown): boolean => value !== undefined && value !== null;

export const applicationRules: Rules = {
  ...Object.fromEntries(
    // What only the hosted service's own pages show or set, or what has one possible meaning here.
    [
      ...['tenant', 'global', 'owners', 'callback_url_template', 'custom_login_page_preview', 'config_route'],
      ...['deleted', 'created_at', 'updated_at', 'jwt_configuration.scopes', 'encryption_key.subject'],
    ].map((name) => [`clients.${name}`, inForce]),
  ),
  'clients.jwks_uri': absent(
    'keys are not fetched from the application: its logins with private_key_jwt fail until the public keys are in client_authentication_methods',
  ),
  'clients.signing_keys': differently(
    'tokens are signed with keys of this server; gatehouse keys trust accepts ID tokens of the old ones for a time',
    'clients-keys.md#signing-keys-are-rsa-2048-the-current-the-next-and-the-previous-are-published',
  ),
  'clients.client_aliases': absent('audiences by other names of the application are not accepted'),
  'clients.allowed_clients': absent('other applications cannot get its tokens by delegation'),
  'clients.sso': absent(
    'single sign-on is on for all applications: users with a session are not asked to log in',
    (value, { oidc_conformant: isConformant }) => value === false && isConformant !== true,
  ),
  'clients.sso_disabled': absent(
    'single sign-on stays on: users with a session are not asked to log in',
    isTrue,
  ),
  'clients.cross_origin_auth': absent(
    'the older name of cross_origin_authentication: logins in the application’s own page fail',
    (value, { cross_origin_authentication: isOn }) => value === true && isOn !== true,
  ),
  'clients.cross_origin_loc': absent(
    'there is no fallback page for browsers that block cookies of other sites',
  ),
  'clients.form_template': absent('the form of WS-Federation answers is not used'),
  'clients.grant_types': absent(
    'the older grants among these are refused: /delegation, /oauth/ro and their like',
    (value) =>
      Array.isArray(value) && value.some((one) => typeof one === 'string' && one.startsWith(LEGACY_GRANTS)),
  ),
  'clients.jwt_configuration.secret_encoded': absent(
    'HS256 ID tokens are signed with the secret as it is written, not decoded from base64: the application must verify them so',
    (value, { jwt_configuration }) =>
      value === true && (jwt_configuration as Item | undefined)?.alg === 'HS256',
  ),
  'clients.addons.*': absent('the service behind this add-on gets no logins and tokens from here', has),
  'clients.addons.samlp': inForce,
  'clients.addons.wsfed': absent(
    'WS-Federation is not spoken: nobody can log in to this application with it',
    has,
  ),
  'clients.token_quota': absent(
    'tokens that the application gets for itself are not counted against a quota',
  ),
  'clients.skip_non_verifiable_callback_uri_confirmation_prompt': absent(
    'users are not asked before they return to an application by a custom scheme or localhost',
    isFalse,
  ),
  'clients.express_configuration': absent(
    'companies cannot set up the application from their identity provider’s catalogue',
  ),
  'clients.b2b_integration_configuration': absent(
    'companies cannot set up the application from their identity provider’s catalogue',
  ),
  'clients.my_organization_configuration': absent(
    'members of organizations cannot manage them by the My Organization API',
  ),
  'clients.fedcm_login': absent(
    'browsers do not offer accounts by FedCM: users click the button of the provider',
    (value) => (value as { google?: { is_enabled?: unknown } } | null)?.google?.is_enabled === true,
  ),
  'clients.identity_assertion_authorization_grant': absent(
    'identity assertions of other servers are not exchanged for tokens',
    (value) => (value as Item | null)?.active === true,
  ),
  'clients.token_vault_privileged_access': absent(
    'the application gets tokens of connected accounts only with their user',
  ),
  'clients.client_authentication_methods.*.credentials.*': inForce,
  'clients.signed_request_object.credentials.*': inForce,
  'clients.oidc_logout.backchannel_logout_initiators.*': inForce,
  'clients.oidc_backchannel_logout.backchannel_logout_initiators.*': inForce,
  'clients.client_metadata.*': inForce,
  'clients.default_organization.*': inForce,
  'clients.session_transfer.*': inForce,

  ...Object.fromEntries(
    ['is_system', 'client_id', 'scopes.name'].map((name) => [`resourceServers.${name}`, inForce]),
  ),
  'resourceServers.verificationKey': absent(
    'access tokens are signed with the server’s keys, not with this one',
  ),
  'resourceServers.verificationLocation': absent(
    'access tokens are signed with the server’s keys, not with those at this address',
  ),
  'resourceServers.allow_online_access': absent(
    'refresh tokens that end with the session are not issued',
    isTrue,
  ),
  'resourceServers.allow_online_access_with_ephemeral_sessions': absent(
    'refresh tokens that end with the session are not issued',
    isTrue,
  ),
  'resourceServers.authorization_policy': absent('tokens for the API are issued without asking its policy'),

  'clientGrants.is_system': inForce,

  'roles.type': absent(
    'the role can be given to everybody, and not only to members of an organization',
    (value) => value === 'organization',
  ),
  'roles.permissions.*': inForce,
};
