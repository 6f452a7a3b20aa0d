// The tenant file that `gatehouse init` writes: one application, with what it needs and nothing else.
import { escapeVariables } from '../../tenant/variables.ts';
import type { QuickstartValues } from './snippet.ts';
import { type Shape, STARTER_API, type Starter } from './starters.ts';

export interface StarterApplication {
  /** Shown to users on the login page. */
  name: string;
  /** Undefined for an application that cannot keep one. */
  secret: string | undefined;
  values: QuickstartValues;
}

/** Reports whether an application of this shape has a secret. */
export const hasSecret = (shape: Shape): boolean =>
  shape === 'regular_web' || shape === 'non_interactive' || shape === 'api';

/** Reports whether users log in to an application of this shape. */
export const hasLogin = (shape: Shape): boolean => shape !== 'non_interactive' && shape !== 'api';

// JSON is YAML, too: no name can end its string, nor stand for a variable of the environment, which may be a secret.
const quoted = (text: string): string => JSON.stringify(escapeVariables(text));

/** Returns the text of the tenant file. */
export function starterFile({ name: kind, shape }: Starter, application: StarterApplication): string {
  const { values } = application;
  const parts = [
    head(kind, hasLogin(shape)),
    clients(shape, application),
    ...(shape === 'saml' ? [] : [API]),
    ...(hasLogin(shape) ? [] : [grant(values)]),
    ...(hasLogin(shape) ? [people(values)] : []),
  ];
  return parts.join('\n');
}

const head = (
  kind: string,
  hasUsers: boolean,
): string => `# Written by \`gatehouse init ${kind}\`. It is yours: edit it.
#
# A development server in a terminal takes over what you change here, as soon as you save it. Other servers do when you
# run the command \`apply\` of Gatehouse; \`check\` names mistakes. \${NAME} comes from the environment.

tenant:
  friendly_name: Gatehouse # the name on the login page
${hasUsers ? '  default_directory: Username-Password-Authentication # the database below\n' : ''}`;

const REFRESH = `    # A refresh token is good once: each use gives the next one, and a stolen one is noticed.
    refresh_token:
      rotation_type: rotating
      expiration_type: expiring
      leeway: 30 # seconds: two tabs may refresh at once
      token_lifetime: 2592000 # seconds: 30 days
      idle_token_lifetime: 1296000 # seconds without use
`;

function clients(shape: Shape, { name, secret, values }: StarterApplication): string {
  const { clientId, callback, afterLogout } = values;
  const entry = (comment: string, members: string) => `clients:
  # ${comment}
  - name: ${quoted(name)}
    client_id: ${quoted(clientId)}
${secret === undefined ? '' : `    client_secret: ${quoted(secret)} # made for this file; keep it on your server\n`}${members}`;
  const callbacks = `    # Users return here after the login: exactly this address, or the login is refused.
    callbacks:
      - ${quoted(callback)}
`;
  const logouts = `    # And here after the logout.
    allowed_logout_urls:
      - ${quoted(afterLogout)}
`;
  switch (shape) {
    case 'spa':
      return entry(
        'A single-page application. It cannot keep a secret: it logs in with a code and PKCE.',
        `    app_type: spa
    oidc_conformant: true
    token_endpoint_auth_method: none
${callbacks}${logouts}    # Its scripts call this server from here.
    web_origins:
      - ${quoted(afterLogout)}
    grant_types: [authorization_code, refresh_token]
${REFRESH}`,
      );
    case 'regular_web':
      return entry(
        'A web application on a server, which keeps a secret.',
        `    app_type: regular_web
    oidc_conformant: true
    token_endpoint_auth_method: client_secret_post
${callbacks}${logouts}    grant_types: [authorization_code, refresh_token]
`,
      );
    case 'native':
      return entry(
        'An installed application. It cannot keep a secret: it logs in with a code and PKCE, in the browser of the system.',
        `    app_type: native
    oidc_conformant: true
    token_endpoint_auth_method: none
${callbacks}      # A mobile application has an address of its own, such as com.example.app:/callback
${logouts}    grant_types: [authorization_code, refresh_token]
${REFRESH}`,
      );
    case 'device':
      return entry(
        'A device without a keyboard: its user logs in on another one, with a short code.',
        `    app_type: native
    oidc_conformant: true
    token_endpoint_auth_method: none
    grant_types: [urn:ietf:params:oauth:grant-type:device_code, refresh_token]
`,
      );
    case 'saml':
      return entry(
        'An application with SAML 2.0.',
        `    app_type: regular_web
    # Its assertion consumer service: users return here after the login.
    callbacks:
      - ${quoted(callback)}
    addons:
      samlp:
        audience: ${quoted(`urn:${clientId}`)} # the entity ID of the application
`,
      );
    case 'non_interactive':
    case 'api':
      return entry(
        shape === 'api'
          ? 'A program that calls the API: a machine, which gets tokens for itself.'
          : 'A machine: no user, tokens for itself.',
        `    app_type: non_interactive
    grant_types: [client_credentials]
`,
      );
  }
}

const API = `resourceServers:
  # An API. Its identifier is the audience of access tokens: a name, nothing has to be at that address.
  - name: Example API
    identifier: ${quoted(STARTER_API)}
    signing_alg: RS256
    token_lifetime: 86400 # seconds
    allow_offline_access: true # applications may get refresh tokens for it
    scopes:
      - value: read:things
        description: Read your things
`;

const grant = ({ clientId }: QuickstartValues): string => `clientGrants:
  # What the machine may do at the API.
  - client_id: ${quoted(clientId)}
    audience: ${quoted(STARTER_API)}
    scope: [read:things]
`;

const people = ({ clientId }: QuickstartValues): string => `databases:
  # Where the users and their passwords are, and which applications they may log in to.
  - name: Username-Password-Authentication
    strategy: auth0
    enabled_clients: [${quoted(clientId)}]
    options:
      passwordPolicy: good

# Users for development, created if they are not there. Production refuses this section.
users:
  - email: user@example.test
    password: Gatehouse-1
    email_verified: true
`;
