// A small web application: log in, log out.
import express from 'express';
import openIdConnect from 'express-openid-connect';

/** Starts it. @returns the server. */
export function startApp({ port, issuer }) {
  const app = express();
  // The SDK adds the routes /login, /callback and /logout.
  app.use(
    openIdConnect.auth({
      baseURL: `http://localhost:${port}`,
      issuerBaseURL: issuer,
      clientID: 'notes',
      clientSecret: 'notes-example-secret',
      secret: 'a-long-secret-that-signs-the-cookie-of-the-session',
      authRequired: false,
      idpLogout: true,
      authorizationParams: { response_type: 'code', scope: 'openid profile email' },
    }),
  );
  app.get('/', (request, response) => {
    const { user } = request.oidc;
    response.send(page(user === undefined ? loggedOut : loggedIn(user)));
  });
  return app.listen(port, 'localhost');
}

const loggedOut = '<a href="/login">Log in</a>';

const loggedIn = (user) => `<p>You are logged in as ${escaped(user.email)}.</p><a href="/logout">Log out</a>`;

const page = (content) => `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Notes</title>
<main><h1>Notes</h1>${content}</main>
</html>`;

const escaped = (text) => text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
