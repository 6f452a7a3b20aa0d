// How an application logs its users in, by the SDKs that our tests run: short programs with the application's real values.

export type Kind = 'spa' | 'regular_web' | 'native' | 'non_interactive';

/** What is put into a program. */
interface QuickstartValues {
  /** Host, and port where there is one: what SDKs call the domain. */
  domain: string;
  /** The issuer, with the slash at its end. */
  issuer: string;
  clientId: string;
  /** The first callback, or one to be entered. */
  callback: string;
  /** Where users are after they have logged out. */
  afterLogout: string;
  /** An API that the application may ask for tokens of; undefined where it may for none. */
  audience: string | undefined;
}

/** A program of a quickstart. */
interface Snippet {
  /** The package that it is for, as it is installed; undefined for one that needs none. */
  package: string | undefined;
  language: 'js' | 'jsx' | 'sh';
  code: string;
}

/** The programs for an application of a kind. Secrets are read from the environment: they are in no program. */
export function snippetsOf(kind: Kind, values: QuickstartValues): Snippet[] {
  switch (kind) {
    case 'spa':
      return [auth0React(values), spaJs(values), auth0Js(values)];
    case 'native':
      return [openIdClientPublic(values)];
    case 'regular_web':
      return [openIdClient(values), authJs(values)];
    case 'non_interactive':
      return [openIdClientMachine(values), authJsMachine(values), auth0Management(values), curl(values)];
  }
}

/** A text as JavaScript has it: nothing in a name ends the text, or the comment that it stands in. */
function quoted(text: string): string {
  const inside = JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'");
  return `'${inside.replace(/[\u2028\u2029]/g, (end) => `\\u${end.charCodeAt(0).toString(16)}`)}'`;
}

const audienceLine = ({ audience }: QuickstartValues, indent: string): string =>
  audience === undefined ? '' : `\n${indent}audience: ${quoted(audience)},`;

const js = (name: string, code: string): Snippet => ({ package: name, language: 'js', code });

const spaJs = (values: QuickstartValues): Snippet =>
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

const auth0React = (values: QuickstartValues): Snippet => ({
  package: '@auth0/auth0-react',
  language: 'jsx',
  code: `import { createRoot } from 'react-dom/client';
import { Auth0Provider, useAuth0 } from '@auth0/auth0-react';

function App() {
  const { isLoading, isAuthenticated, user, loginWithRedirect, logout } = useAuth0();
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

const openIdClientPublic = (values: QuickstartValues): Snippet => {
  const { code, ...rest } = openIdClient(values);
  return {
    ...rest,
    code: code.replace('process.env.CLIENT_SECRET,', 'undefined,\n  client.None(),'),
  };
};

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

const audienceOf = ({ audience }: QuickstartValues): string => audience ?? 'https://api.example.com/';

const openIdClientMachine = (values: QuickstartValues): Snippet =>
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

/** A text as a shell has it. */
const inShell = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

const curl = (values: QuickstartValues): Snippet => ({
  package: undefined,
  language: 'sh',
  code: `curl ${inShell(`${values.issuer}oauth/token`)} \\
  -d grant_type=client_credentials \\
  -d ${inShell(`client_id=${values.clientId}`)} \\
  -d "client_secret=$CLIENT_SECRET" \\
  --data-urlencode ${inShell(`audience=${audienceOf(values)}`)}
`,
});
