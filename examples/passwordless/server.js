import express from 'express';
import openIdConnect from 'express-openid-connect';

const { PORT, AUTH0_DOMAIN, AUTH0_CLIENT_ID, AUTH0_CLIENT_SECRET, SESSION_SECRET } = process.env;

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
    authorizationParams: { response_type: 'code', scope: 'openid profile email' },
  }),
);

app.get('/', (request, response) => {
  const { user } = request.oidc;
  response.send(page(user === undefined ? loggedOut : loggedIn(user)));
});

const loggedOut = '<a class="button" href="/login">Log in</a>';

const loggedIn = (user) => `<p>You are logged in as ${escaped(user.email)}.</p>
<a class="button" href="/logout">Log out</a>`;

const page = (content) => `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Passwordless example</title>
<link rel="stylesheet" href="/style.css">
<main><h1>Passwordless example</h1>${content}</main>
</html>`;

const escaped = (text) => text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);

app.listen(PORT, 'localhost');
