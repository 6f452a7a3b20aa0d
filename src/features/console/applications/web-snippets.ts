// Quickstart programs for applications that use the authorization code grant, on a server or installed.
import { audienceLine, js, type QuickstartValues, quoted, type Snippet } from './snippet.ts';

/** On a server, with the OpenID Connect library openid-client. */
export const openIdClient = (values: QuickstartValues): Snippet =>
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
export const authJs = (values: QuickstartValues): Snippet =>
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
  const callback = URL.parse(values.callback);
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
  appBaseUrl: ${quoted(callback?.origin ?? values.callback)},
  routes: { callback: ${quoted(callback?.pathname ?? '/')} },
});

export const proxy = (request) => client.middleware(request);

// Users log in at /auth/login, and out at /auth/logout. In a page: (await client.getSession())?.user
`,
  );
};

/** For an installed application, with the library that openid-client is built on. */
export const oauth4webApi = (values: QuickstartValues): Snippet =>
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
