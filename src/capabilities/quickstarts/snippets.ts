// Chooses the quickstart programs of an application: short programs with its real values, for SDKs that our tests
// run.
import { angular, vue } from './browser-snippets.ts';
import {
  audienceLine,
  js,
  originOf,
  pathOf,
  type QuickstartValues,
  quoted,
  type Snippet,
} from './snippet.ts';
import { express, fastapi, fastify, flask, go, hono, nuxt, spring, svelteKit } from './web-snippets.ts';

/** `resource_server`: an API that calls other APIs for the users whose tokens it receives. */
export type Kind = 'spa' | 'regular_web' | 'native' | 'non_interactive' | 'resource_server';

/** Returns the programs for an application of a kind. They read secrets from the environment and contain none. */
export function snippetsOf(kind: Kind, values: QuickstartValues): Snippet[] {
  switch (kind) {
    case 'spa':
      return [
        auth0React(values),
        vue(values),
        angular(values),
        spaJs(values),
        auth0Js(values),
        auth0Lock(values),
      ];
    case 'native':
      return [openIdClientPublic(values), oauth4webApi(values)];
    case 'regular_web':
      return [
        nextJs(values),
        nuxt(values),
        svelteKit(values),
        express(values),
        fastify(values),
        hono(values),
        openIdClient(values),
        authJs(values),
        fastapi(values),
        flask(values),
        go(values),
        spring(values),
      ];
    case 'non_interactive':
      return [openIdClientMachine(values), authJsMachine(values), auth0Management(values), curl(values)];
    case 'resource_server':
      return [curlOnBehalfOf(values)];
  }
}

// Quickstart programs for machine-to-machine applications.

const audienceOf = ({ audience }: QuickstartValues): string => audience ?? 'https://api.example.com/';

/** With the OpenID Connect library openid-client. */
export const openIdClientMachine = (values: QuickstartValues): Snippet =>
  js(
    'openid-client',
    `import * as client from 'openid-client';

const config = await client.discovery(
  new URL(${quoted(values.issuer)}),
  ${quoted(values.clientId)},
  process.env.CLIENT_SECRET,
);
const tokens = await client.clientCredentialsGrant(config, { audience: ${quoted(audienceOf(values))} });
console.log(tokens.access_token);
`,
  );

/** With the authentication SDK. */
const authJsMachine = (values: QuickstartValues): Snippet =>
  js(
    '@auth0/auth0-auth-js',
    `import { AuthClient } from '@auth0/auth0-auth-js';

const client = new AuthClient({
  domain: ${quoted(values.domain)},
  clientId: ${quoted(values.clientId)},
  clientSecret: process.env.CLIENT_SECRET,
});
const tokens = await client.getTokenByClientCredentials({ audience: ${quoted(audienceOf(values))} });
console.log(tokens.accessToken);
`,
  );

const auth0Management = (values: QuickstartValues): Snippet =>
  js(
    'auth0',
    `import { ManagementClient } from 'auth0';

// For an application that may use the Management API, with the scope read:users.
const client = new ManagementClient({
  domain: ${quoted(values.domain)},
  clientId: ${quoted(values.clientId)},
  clientSecret: process.env.CLIENT_SECRET,
});
for await (const user of await client.users.list()) console.log(user.email);
`,
  );

const shellQuoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

/** A request for tokens, without any package. */
const curlFor = (values: QuickstartValues, grantType: string, more: readonly string[] = []): Snippet => ({
  title: 'curl',
  package: undefined,
  install: undefined,
  language: 'sh',
  code: `curl ${[
    shellQuoted(`${values.issuer}oauth/token`),
    `-d grant_type=${grantType}`,
    `--data-urlencode ${shellQuoted(`client_id=${values.clientId}`)}`,
    '--data-urlencode "client_secret=$CLIENT_SECRET"',
    ...more,
    `--data-urlencode ${shellQuoted(`audience=${audienceOf(values)}`)}`,
  ].join(' \\\n  ')}
`,
});

export const curl = (values: QuickstartValues): Snippet => curlFor(values, 'client_credentials');

/** RFC 8693: the token of a user that the API has received, for one of another API. */
const curlOnBehalfOf = (values: QuickstartValues): Snippet =>
  curlFor(values, 'urn:ietf:params:oauth:grant-type:token-exchange', [
    '-d subject_token="$RECEIVED_TOKEN"',
    '-d subject_token_type=urn:ietf:params:oauth:token-type:access_token',
  ]);

// Quickstart programs for applications in a browser.

/** For any single-page application. */
export const spaJs = (values: QuickstartValues): Snippet =>
  js(
    '@auth0/auth0-spa-js',
    `import { createAuth0Client } from '@auth0/auth0-spa-js';

const client = await createAuth0Client({
  domain: ${quoted(values.domain)},
  clientId: ${quoted(values.clientId)},
  authorizationParams: {
    redirect_uri: ${quoted(values.callback)},${audienceLine(values, '    ')}
  },
});

if (new URLSearchParams(location.search).has('code')) await client.handleRedirectCallback();
else if (!(await client.isAuthenticated())) await client.loginWithRedirect();

console.log(await client.getUser());
// client.logout({ logoutParams: { returnTo: ${quoted(values.afterLogout)} } });
`,
  );

export const auth0React = (values: QuickstartValues): Snippet => ({
  ...js('@auth0/auth0-react', ''),
  language: 'jsx',
  code: `// src/main.jsx, such as in what 'npm create vite@latest my-app -- --template react' makes
import { createRoot } from 'react-dom/client';
import { Auth0Provider, useAuth0 } from '@auth0/auth0-react';

function App() {
  const { error, isLoading, isAuthenticated, user, loginWithRedirect, logout } = useAuth0();
  if (error) return <p>{error.message}</p>;
  if (isLoading) return null;
  if (!isAuthenticated) return <button onClick={() => loginWithRedirect()}>Log in</button>;
  const logoutParams = { returnTo: ${quoted(values.afterLogout)} };
  return <button onClick={() => logout({ logoutParams })}>Log out {user.email}</button>;
}

createRoot(document.getElementById('root')).render(
  <Auth0Provider
    domain={${quoted(values.domain)}}
    clientId={${quoted(values.clientId)}}
    authorizationParams={{
      redirect_uri: ${quoted(values.callback)},${audienceLine(values, '      ')}
    }}
  >
    <App />
  </Auth0Provider>,
);
`,
});

/** For the older library auth0-js. */
const auth0Js = (values: QuickstartValues): Snippet =>
  js(
    'auth0-js',
    `import auth0 from 'auth0-js';

const webAuth = new auth0.WebAuth({
  domain: ${quoted(values.domain)},
  clientID: ${quoted(values.clientId)},
  redirectUri: ${quoted(values.callback)},
  responseType: 'code',${audienceLine(values, '  ')}
});

webAuth.authorize();
`,
  );

/** For the login widget in a page of the application. */
const auth0Lock = (values: QuickstartValues): Snippet =>
  js(
    'auth0-lock',
    `import { Auth0Lock } from 'auth0-lock';

const lock = new Auth0Lock(${quoted(values.clientId)}, ${quoted(values.domain)}, {
  auth: {
    redirectUrl: ${quoted(values.callback)},
    responseType: 'token id_token',${audienceLine(values, '    ')}
    params: { scope: 'openid profile email' },
  },
});

lock.on('authenticated', ({ idTokenPayload }) => console.log(idTokenPayload));
lock.show();
`,
  );

// Quickstart programs for applications that use the authorization code grant, on a server or installed.

/** On a server, with the OpenID Connect library openid-client. */
const openIdClient = (values: QuickstartValues): Snippet =>
  js(
    'openid-client',
    `import * as client from 'openid-client';

const config = await client.discovery(
  new URL(${quoted(values.issuer)}),
  ${quoted(values.clientId)},
  process.env.CLIENT_SECRET,
);

// Keep both in the user's session, and send the browser to the address.
const verifier = client.randomPKCECodeVerifier();
const state = client.randomState();
const address = client.buildAuthorizationUrl(config, {
  redirect_uri: ${quoted(values.callback)},
  scope: 'openid profile email',${audienceLine(values, '  ')}
  code_challenge: await client.calculatePKCECodeChallenge(verifier),
  code_challenge_method: 'S256',
  state,
});

// At the callback, with the address that the browser came to:
const tokens = await client.authorizationCodeGrant(config, callbackUrl, {
  pkceCodeVerifier: verifier,
  expectedState: state,
});
console.log(tokens.claims());
`,
  );

/** The same for a public client. */
export const openIdClientPublic = (values: QuickstartValues): Snippet => {
  const { code, ...rest } = openIdClient(values);
  return {
    ...rest,
    code: code.replace('process.env.CLIENT_SECRET,', 'undefined,\n  client.None(),'),
  };
};

/** On a server, with the authentication SDK. */
const authJs = (values: QuickstartValues): Snippet =>
  js(
    '@auth0/auth0-auth-js',
    `import { AuthClient } from '@auth0/auth0-auth-js';

const client = new AuthClient({
  domain: ${quoted(values.domain)},
  clientId: ${quoted(values.clientId)},
  clientSecret: process.env.CLIENT_SECRET,
  authorizationParams: { redirect_uri: ${quoted(values.callback)} },
});

// Keep the verifier in the user's session, and send the browser to the address.
const { authorizationUrl, codeVerifier } = await client.buildAuthorizationUrl();

// At the callback, with the address that the browser came to:
const tokens = await client.getTokenByCode(callbackUrl, { codeVerifier });
console.log(tokens.claims);
`,
  );

/** For Next.js. The SDK has its own addresses for login, callback and logout. */
export const nextJs = (values: QuickstartValues): Snippet => {
  return js(
    '@auth0/nextjs-auth0',
    `// proxy.js; middleware.js before Next.js 16
import { Auth0Client } from '@auth0/nextjs-auth0/server';

const client = new Auth0Client({
  domain: ${quoted(values.domain)},
  clientId: ${quoted(values.clientId)},
  clientSecret: process.env.CLIENT_SECRET,
  // 32 random bytes, which its session cookies are encrypted with.
  secret: process.env.AUTH0_SECRET,
  appBaseUrl: ${quoted(originOf(values))},
  routes: { callback: ${quoted(pathOf(values))} },
});

export const proxy = (request) => client.middleware(request);

// Users log in at /auth/login, and out at /auth/logout. In a page: (await client.getSession())?.user
`,
  );
};

/** For an installed application, with the library that openid-client is built on. */
const oauth4webApi = (values: QuickstartValues): Snippet =>
  js(
    'oauth4webapi',
    `import * as oauth from 'oauth4webapi';

const issuer = new URL(${quoted(values.issuer)});
const server = await oauth.processDiscoveryResponse(issuer, await oauth.discoveryRequest(issuer));
const application = { client_id: ${quoted(values.clientId)} };

// Keep both, and open the address in the browser of the system.
const verifier = oauth.generateRandomCodeVerifier();
const state = oauth.generateRandomState();
const address = new URL(server.authorization_endpoint);
address.search = new URLSearchParams({
  client_id: application.client_id,
  redirect_uri: ${quoted(values.callback)},
  response_type: 'code',
  scope: 'openid profile email',
  code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
  code_challenge_method: 'S256',
  state,
});

// At the callback, with the address that the browser came to:
const answer = oauth.validateAuthResponse(server, application, callbackUrl, state);
const response = await oauth.authorizationCodeGrantRequest(
  server,
  application,
  oauth.None(),
  answer,
  ${quoted(values.callback)},
  verifier,
);
const tokens = await oauth.processAuthorizationCodeResponse(server, application, response);
console.log(oauth.getValidatedIdTokenClaims(tokens));
`,
  );
