const element = (id) => document.getElementById(id);

const { domain, clientID, audience } = await (await fetch('/config.json')).json();
const webAuth = new window.auth0.WebAuth({
  domain,
  clientID,
  audience,
  redirectUri: window.location.origin,
  responseType: 'token id_token',
  scope: 'openid profile email read:messages',
});

/** Returns what a method of the SDK passes to its callback. */
const result = (method, ...args) =>
  new Promise((resolve, reject) =>
    webAuth[method](...args, (error, answer) => (error ? reject(error) : resolve(answer))),
  );

/** Returns the tokens of the login that led back here, or those of a session that Gatehouse still has. */
async function tokens() {
  const { hash } = window.location;
  if (hash === '') return result('checkSession', {}).catch(() => undefined);
  window.history.replaceState(null, '', '/');
  return result('parseHash', { hash });
}

element('logged-out').addEventListener('submit', (event) => {
  event.preventDefault();
  const { email, password } = Object.fromEntries(new FormData(event.target));
  // Sends the password to Gatehouse, which logs in and redirects back to this page with the tokens.
  result('login', { realm: 'Username-Password-Authentication', email, password }).catch((error) => {
    element('error').textContent = error.description;
  });
});
element('logout').addEventListener('click', () => webAuth.logout({ returnTo: window.location.origin }));

const login = await tokens().catch((error) => {
  element('error').textContent = error.errorDescription ?? error.error;
  return undefined;
});
if (login) {
  element('email').textContent = login.idTokenPayload.email;
  element('call').addEventListener('click', async () => {
    const headers = { authorization: `Bearer ${login.accessToken}` };
    const response = await fetch('/api/messages', { headers });
    element('answer').textContent = response.ok
      ? (await response.json()).message
      : `The API answered ${response.status}`;
  });
}
element(login ? 'logged-in' : 'logged-out').hidden = false;
