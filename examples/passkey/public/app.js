const element = (id) => document.getElementById(id);

const realm = 'Username-Password-Authentication';
const { domain, clientId } = await (await fetch('/config.json')).json();
const client = new window.auth0.Auth0Client({
  domain,
  clientId,
  cacheLocation: 'localstorage',
  authorizationParams: { scope: 'openid profile email' },
});

async function show() {
  const user = await client.getUser();
  element('email').textContent = user?.email ?? '';
  element('logged-in').hidden = user === undefined;
  element('logged-out').hidden = user !== undefined;
}

/** The SDK asks Gatehouse for a challenge, lets the browser sign it, and gets the tokens. */
async function attempt(action) {
  element('error').textContent = '';
  try {
    await action();
    await show();
  } catch (error) {
    element('error').textContent = error.error_description ?? error.message;
  }
}

element('signup').addEventListener('submit', (event) => {
  event.preventDefault();
  const { email } = Object.fromEntries(new FormData(event.target));
  attempt(() => client.passkey.signup({ email, realm }));
});
element('login').addEventListener('click', () => attempt(() => client.passkey.login({ realm })));
element('logout').addEventListener('click', () =>
  client.logout({ logoutParams: { returnTo: window.location.origin } }),
);

await show();
