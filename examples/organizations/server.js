import { ManagementClient } from 'auth0';
import express from 'express';
import openIdConnect from 'express-openid-connect';

const {
  PORT,
  AUTH0_DOMAIN,
  AUTH0_CLIENT_ID,
  AUTH0_CLIENT_SECRET,
  AUTH0_MANAGEMENT_CLIENT_ID,
  AUTH0_MANAGEMENT_CLIENT_SECRET,
  SESSION_SECRET,
} = process.env;

const management = new ManagementClient({
  domain: AUTH0_DOMAIN,
  clientId: AUTH0_MANAGEMENT_CLIENT_ID,
  clientSecret: AUTH0_MANAGEMENT_CLIENT_SECRET,
});

const app = express();
app.use(express.static('public'));
app.use(express.urlencoded({ extended: false }));
// The SDK adds the routes /callback and /logout.
app.use(
  openIdConnect.auth({
    baseURL: `http://localhost:${PORT}`,
    issuerBaseURL: `https://${AUTH0_DOMAIN}`,
    clientID: AUTH0_CLIENT_ID,
    clientSecret: AUTH0_CLIENT_SECRET,
    secret: SESSION_SECRET,
    authRequired: false,
    idpLogout: true,
    routes: { login: false },
    authorizationParams: { response_type: 'code', scope: 'openid profile email' },
  }),
);

// The link of an invitation leads here with `invitation` and `organization`; the button has neither.
app.get('/login', (request, response) => {
  const { invitation, organization } = request.query;
  return response.oidc.login({
    returnTo: '/',
    authorizationParams: typeof invitation === 'string' ? { invitation, organization } : {},
  });
});

app.get('/', (request, response) => {
  const { user } = request.oidc;
  response.send(page(user === undefined ? loggedOut : loggedIn(user)));
});

// Every member may invite here; a real application would check a role. The organization is that of the login, never one
// that the browser names.
app.post('/invitations', openIdConnect.requiresAuth(), async (request, response) => {
  const { user } = request.oidc;
  await management.organizations.invitations.create(user.org_id, {
    inviter: { name: user.name },
    invitee: { email: request.body.email },
    client_id: AUTH0_CLIENT_ID,
  });
  response.send(page(`${loggedIn(user)}<p role="status">${escaped(request.body.email)} is invited.</p>`));
});

const loggedOut = '<a class="button" href="/login">Log in</a>';

const loggedIn = (user) => `<p>You are logged in as ${escaped(user.email)}.</p>
<p>Your organization is ${escaped(user.org_name)}.</p>
<form method="post" action="/invitations">
<label>E-mail of a colleague <input name="email" type="email" required></label>
<button>Invite</button>
</form>
<a class="button" href="/logout">Log out</a>`;

const page = (content) => `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Organizations example</title>
<link rel="stylesheet" href="/style.css">
<main><h1>Organizations example</h1>${content}</main>
</html>`;

const escaped = (text) => text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);

app.listen(PORT, 'localhost');
