// The SDK's script has defined the global `auth0`.
const { domain, clientId, audience, api } = await (await fetch('/configuration.json')).json();

const client = await auth0.createAuth0Client({
  domain,
  clientId,
  authorizationParams: {
    redirect_uri: window.location.origin,
    audience,
    scope: 'openid profile email read:messages',
  },
  useRefreshTokens: true,
  cacheLocation: 'localstorage',
});

const element = (id) => document.getElementById(id);

async function callApi() {
  const token = await client.getTokenSilently();
  const response = await fetch(`${api}/api/messages`, { headers: { authorization: `Bearer ${token}` } });
  element('answer').textContent = response.ok
    ? (await response.json()).message
    : `The API answered ${response.status}`;
}

element('login').onclick = () => client.loginWithRedirect();
element('logout').onclick = () => client.logout({ logoutParams: { returnTo: window.location.origin } });
element('call').onclick = callApi;

// Gatehouse has sent the user back, with a code or an error.
if (/[?&](?:code|error)=/.test(window.location.search)) {
  try {
    await client.handleRedirectCallback();
  } catch (error) {
    element('error').textContent = error.message;
    element('error').hidden = false;
  }
  window.history.replaceState({}, '', '/');
}

const user = await client.getUser();
if (user) element('user').textContent = `You are logged in as ${user.email}.`;
element('account').hidden = !user;
element('guest').hidden = Boolean(user);
