import { auth, callback, login, logout, requiresAuth } from '@auth0/auth0-hono';
import { serve } from '@hono/node-server';
import { serveStatic } from '@hono/node-server/serve-static';
import { Hono } from 'hono';
import { html } from 'hono/html';
import { startApi } from './api.js';
import { clientWithPort } from './client.js';

const { PORT, API_PORT, AUTH0_DOMAIN, AUTH0_AUDIENCE } = process.env;
const authorizationParams = { audience: AUTH0_AUDIENCE, scope: 'openid profile email read:messages' };

const app = new Hono();
app.use('/style.css', serveStatic({ root: 'public' }));
// The SDK reads the other settings from .env.
app.use(
  auth({
    domain: AUTH0_DOMAIN.split(':')[0],
    authRequired: false,
    idpLogout: true,
    authorizationParams,
    mountRoutes: false,
  }),
);
// If your AUTH0_DOMAIN has no port, leave out this line, `mountRoutes` and the three routes.
app.use(clientWithPort(authorizationParams));
app.get('/auth/login', login());
app.get('/auth/callback', callback());
app.get('/auth/logout', logout());

app.get('/', async (c) => {
  const user = await c.var.auth0Client.getUser(c);
  return c.html(page(user === undefined ? loggedOut : loggedIn(user)));
});

app.get('/messages', requiresAuth(), async (c) => {
  const { accessToken } = await c.var.auth0Client.getAccessToken(c);
  const answer = await fetch(`http://localhost:${API_PORT}/api/messages`, {
    headers: { authorization: `Bearer ${accessToken}` },
  });
  const message = answer.ok ? (await answer.json()).message : `The API answered ${answer.status}`;
  const user = await c.var.auth0Client.getUser(c);
  return c.html(page(html`${loggedIn(user)}<p role="status">${message}</p>`));
});

const loggedOut = html`<a class="button" href="/auth/login">Log in</a>`;

const loggedIn = (user) => html`<p>You are logged in as ${user.email}.</p>
<a class="button" href="/messages">Call the API</a>
<a class="button" href="/auth/logout">Log out</a>`;

const page = (content) => html`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Hono example</title>
<link rel="stylesheet" href="/style.css">
<main><h1>Hono example</h1>${content}</main>
</html>`;

serve({ fetch: app.fetch, port: Number(PORT), hostname: 'localhost' });
startApi(Number(API_PORT));
