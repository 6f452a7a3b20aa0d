// Quickstart programs for applications in a browser.
import { audienceLine, js, type QuickstartValues, quoted, type Snippet } from './snippet.ts';

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

/** For React. */
export const auth0React = (values: QuickstartValues): Snippet => ({
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

/** For the older library auth0-js. */
export const auth0Js = (values: QuickstartValues): Snippet =>
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
export const auth0Lock = (values: QuickstartValues): Snippet =>
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
