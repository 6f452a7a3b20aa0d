// What becomes of databases and connections.
import { strategyRecord } from '../../records/connections/connections.ts';
import { SOCIAL_STRATEGIES } from '../../records/connections/social.ts';
import { absent, differently, type Item, inForce, isAsked, type Rules } from './verdict.ts';

const GOOGLE = ['google-oauth2', 'google-apps'];
const MICROSOFT = ['waad', 'windowslive'];
/** The strategies of which an option that is true asks for a scope. */
const SCOPE_FLAGS: readonly string[] = [...SOCIAL_STRATEGIES, ...GOOGLE, ...MICROSOFT];

const isActive = (value: unknown) => (value as Item | null)?.active === true;
const isTrue = (value: unknown) => value === true;
/** The strategies whose users come from a directory at Google. */
const GOOGLE_DIRECTORIES: readonly unknown[] = ['google-apps'];
const isTrueOfGoogle = (value: unknown, { strategy }: Item) =>
  value === true && GOOGLE_DIRECTORIES.includes(strategy);
/** The strategies whose users come from Microsoft. */
const ENTRA: readonly unknown[] = ['waad'];
const isTrueOfEntra = (value: unknown, { strategy }: Item) => value === true && ENTRA.includes(strategy);
/** The attributes that the server does not ask Microsoft for. */
const UNREAD_OF_ENTRA = ['admin', 'provisioning_errors', 'puid', 'telephoneNumber'];
/** For attributes that this server reads neither from Google nor from Microsoft. */
const isTrueOfDirectories = (value: unknown, { strategy }: Item) =>
  value === true && [...GOOGLE_DIRECTORIES, ...ENTRA].includes(strategy);
/** The strategies whose users type their password of a directory. */
const DIRECTORIES: readonly unknown[] = ['ad', 'auth0-adldap'];
/** The strategies of which an object among the options may be something to notice. */
const WITH_OBJECTS: readonly unknown[] = ['adfs'];

/** Members that databases and other connections share. */
const common = (section: string): Rules => ({
  ...Object.fromEntries(
    // Members of the hosted service's answers, and what no user can notice.
    ['metadata', 'provisioning_ticket_url', 'authentication', 'connected_accounts', 'owner_id'].map(
      (name) => [`${section}.${name}`, inForce],
    ),
  ),
  [`${section}.scim_configuration`]: absent(
    'users are not provisioned by SCIM: they are created at their first login',
  ),
  [`${section}.directory_provisioning_configuration`]: absent(
    'users and groups are not fetched from the directory: users are created at their first login',
  ),
  [`${section}.cross_app_access_requesting_app`]: absent(
    'applications get no tokens for other applications of the company',
    isActive,
  ),
  [`${section}.cross_app_access_resource_app`]: absent(
    'identity assertions of the company’s server are not exchanged',
    (value) => (value as Item | null)?.status === 'enabled',
  ),
  [`${section}.options.mfa`]: inForce,
  [`${section}.options.strategy_version`]: inForce,
});

/** Options that only say what the hosted service found or shows, by any strategy. */
const SILENT_OPTIONS = [
  ...[
    'schema_version',
    'name',
    'profile',
    'email',
    'basic_profile',
    'granted',
    'app_domain',
    'app_id',
    'thumbprints',
    'prev_thumbprints',
  ],
  ...[
    'expires',
    'subject',
    'metadataLastUpdated',
    'signInEndpoint',
    'cert_rollover_notification',
    'certs',
    'agentIP',
    'agentMode',
  ],
  ...['agentVersion', 'ips', 'bindingMethod', 'debug', 'tenant_domain', 'oidc_metadata'],
  ...[
    'allow_setting_login_scopes',
    'admin_access_token',
    'admin_access_token_expiresin',
    'admin_refresh_token',
  ],
  ...['non_persistent_attrs', 'upstream_params', 'domain', 'signatureMethod', 'ui'],
];

export const connectionRules: Rules = {
  ...common('databases'),
  ...common('connections'),
  'connections.show_as_button': absent(
    'the login page has no button for a directory: the domain of an address leads to it, or the application that names it',
    (value, { strategy }) => value === true && DIRECTORIES.includes(strategy),
  ),
  'databases.options.custom_password_hash': absent(
    'the action that checks hashes of an own kind is not run: users with such a hash cannot log in',
  ),
  'databases.options.customScripts.change_phone_number': absent(
    'a changed phone number is not passed on to the custom database',
  ),
  'databases.options.bareConfiguration': inForce,
  'databases.options.disable_signup': inForce,
  'databases.options.authentication_methods': inForce,
  'databases.options.attributes': inForce,
  'databases.options.password_options': inForce,
  'databases.options.password_dictionary': inForce,
  'databases.options.configuration': inForce,
  'databases.options.gateway_authentication': inForce,
  'databases.options.*': absent(
    'the option has no meaning for databases: it is stored, and nothing follows from it',
    isTrue,
  ),

  ...Object.fromEntries(SILENT_OPTIONS.map((name) => [`connections.options.${name}`, inForce])),
  'connections.options.enable_pushed_authorization_requests': absent(
    'requests to the provider go through the browser, not pushed beforehand',
    isTrue,
  ),
  'connections.options.pushed_authorization_request_endpoint': inForce,
  'connections.options.kerberos': absent(
    'nobody is logged in by the network they are in: users type their password',
    isTrue,
  ),
  'connections.options.certAuth': absent(
    'nobody is logged in by a certificate of the directory: users type their password',
    isTrue,
  ),
  'connections.options.disable_cache': differently(
    'the directory is asked at each login; no copy of passwords is kept for when it cannot be reached',
    'connections.md#directories-are-queried-directly',
    (value) => value !== undefined,
  ),
  'connections.options.api_enable_users': absent(
    'users are not read from the directory by its API, only those who log in',
    isTrue,
  ),
  'connections.options.api_enable_groups': absent(
    'groups are not read from the directory by its API',
    isTrue,
  ),
  'connections.options.handle_login_from_social': absent(
    'users of the domain who choose the button of Google stay there: they are other users than those of this connection',
    isTrueOfGoogle,
  ),
  'connections.options.ext_groups': absent(
    'the groups of users at Google are not in their profile',
    isTrueOfGoogle,
  ),
  'connections.options.ext_groups_extended': absent(
    'the groups of users at Google are not in their profile',
    isTrue,
  ),
  'connections.options.ext_is_admin': absent(
    'whether a user administers the domain is not in their profile',
    isTrueOfGoogle,
  ),
  'connections.options.ext_is_suspended': absent(
    'whether a user is suspended is not in their profile',
    isTrueOfDirectories,
  ),
  'connections.options.ext_agreed_terms': absent(
    'whether a user agreed to the terms is not in their profile',
    isTrueOfDirectories,
  ),
  ...Object.fromEntries(
    UNREAD_OF_ENTRA.map((name) => [
      `connections.options.ext_${name}`,
      absent(
        'Microsoft is not asked for this attribute: users have it only if it is in their ID token',
        isTrueOfEntra,
      ),
    ]),
  ),
  // A name that some tools have; the Management API has the other.
  'connections.options.disable_sign_out': absent(
    'the option is called disableSignout: under this name it is stored, and nothing follows from it',
    isTrue,
  ),
  'connections.options.global_token_revocation_jwt_iss': inForce,
  'connections.options.global_token_revocation_jwt_sub': inForce,
  'connections.options.recipientUrl': inForce,
  'connections.options.authParams': inForce,
  'connections.options.syntax': inForce,
  // Any further option of these that is true asks for a scope; of others it has no meaning.
  'connections.options.*': absent(
    'the option has no meaning for this strategy: it is stored, and nothing follows from it',
    (value, { strategy }) =>
      isAsked(value) &&
      // Of a strategy that is not built in, no option has a meaning.
      strategyRecord(String(strategy)) !== undefined &&
      !SCOPE_FLAGS.includes(String(strategy)) &&
      (typeof value !== 'object' || WITH_OBJECTS.includes(strategy)),
  ),
};
