import express from 'express';
import openIdConnect from 'express-openid-connect';
import { startApi } from './api.js';

const { PORT, API_PORT, AUTH0_DOMAIN, AUTH0_CLIENT_ID, AUTH0_CLIENT_SECRET, AUTH0_AUDIENCE, SESSION_SECRET } =
  process.env;

const app = express();
app.use(express.static('public'));
// The SDK adds the routes /login, /callback and /logout.
app.use(
  openIdConnect.auth({
    baseURL: `http://localhost:${PORT}`,
    issuerBaseURL: `https://${AUTH0_DOMAIN}`,
    clientID: AUTH0_CLIENT_ID,
    clientSecret: AUTH0_CLIENT_SECRET,
    secret: SESSION_SECRET,
    authRequired: false,
    idpLogout: true,
    authorizationParams: {
      response_type: 'code',
      audience: AUTH0_AUDIENCE,
      scope: 'openid profile email read:messages',
    },
  }),
);

app.get('/', (request, response) => {
  const { user } = request.oidc;
  response.send(page(user === undefined ? loggedOut : loggedIn(user)));
});

app.get('/messages', openIdConnect.requiresAuth(), async (request, response) => {
  const { access_token: token } = request.oidc.accessToken;
  const answer = await fetch(`http://localhost:${API_PORT}/api/messages`, {
    headers: { authorization: `Bearer ${token}` },
  });
  const message = answer.ok ? (await answer.json()).message : `The API answered ${answer.status}`;
  response.send(page(`${loggedIn(request.oidc.user)}<p role="status">${escaped(message)}</p>`));
});

const loggedOut = '<a class="button" href="/login">Log in</a>';

const loggedIn = (user) => `<p>You are logged in as ${escaped(user.email)}.</p>
<a class="button" href="/messages">Call the API</a>
<a class="button" href="/logout">Log out</a>`;

const page = (content) => `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Express example</title>
<link rel="stylesheet" href="/style.css">
<main><h1>Express example</h1>${content}</main>
</html>`;

const escaped = (text) => text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);

app.listen(PORT, 'localhost');
startApi(API_PORT);
