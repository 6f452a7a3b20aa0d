import express from 'express';
import openIdConnect from 'express-openid-connect';

const { PORT, AUTH0_DOMAIN, AUTH0_CLIENT_ID, AUTH0_CLIENT_SECRET, SESSION_SECRET } = process.env;

/** The class of a login with a second factor. */
const WITH_SECOND_FACTOR = 'http://schemas.openid.net/pape/policies/2007/06/multi-factor';

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

/** Lets those pass who logged in with a second factor (`amr` of the ID token), and asks the others for it. */
function requiresSecondFactor(request, response, next) {
  if (request.oidc.idTokenClaims?.amr?.includes('mfa')) return next();
  return response.oidc.login({
    returnTo: request.originalUrl,
    authorizationParams: { acr_values: WITH_SECOND_FACTOR },
  });
}

app.get('/', (request, response) => {
  const { user } = request.oidc;
  response.send(page(user === undefined ? loggedOut : loggedIn(user)));
});

app.get('/safe', requiresSecondFactor, (request, response) => {
  response.send(page(`${loggedIn(request.oidc.user)}<p role="status">The safe is open.</p>`));
});

const loggedOut = '<a class="button" href="/login">Log in</a>';

const loggedIn = (user) => `<p>You are logged in as ${escaped(user.email)}.</p>
<a class="button" href="/safe">Open the safe</a>
<a class="button" href="/logout">Log out</a>`;

const page = (content) => `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Step-up example</title>
<link rel="stylesheet" href="/style.css">
<main><h1>Step-up example</h1>${content}</main>
</html>`;

const escaped = (text) => text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);

app.listen(PORT, 'localhost');
