import { fileURLToPath } from 'node:url';
import cookie from '@fastify/cookie';
import files from '@fastify/static';
import fastify from 'fastify';
import { startApi } from './api.js';
import { auth0, origin } from './auth0.js';

const { PORT, API_PORT } = process.env;

const app = fastify();
app.register(cookie);
app.register(files, { root: fileURLToPath(new URL('public', import.meta.url)) });

app.get('/login', async (request, reply) => {
  const url = await auth0.startInteractiveLogin({}, { request, reply });
  return reply.redirect(url.href);
});

app.get('/callback', async (request, reply) => {
  await auth0.completeInteractiveLogin(new URL(request.url, origin), { request, reply });
  return reply.redirect('/');
});

app.get('/logout', async (request, reply) => {
  const url = await auth0.logout({ returnTo: origin }, { request, reply });
  return reply.redirect(url.href);
});

app.get('/', async (request, reply) => {
  const user = await auth0.getUser({ request, reply });
  return reply.type('text/html').send(page(user === undefined ? loggedOut : loggedIn(user)));
});

app.get('/messages', async (request, reply) => {
  const user = await auth0.getUser({ request, reply });
  if (user === undefined) return reply.redirect('/login');
  const { accessToken } = await auth0.getAccessToken({ request, reply });
  const answer = await fetch(`http://localhost:${API_PORT}/api/messages`, {
    headers: { authorization: `Bearer ${accessToken}` },
  });
  const message = answer.ok ? (await answer.json()).message : `The API answered ${answer.status}`;
  return reply.type('text/html').send(page(`${loggedIn(user)}<p role="status">${escaped(message)}</p>`));
});

const loggedOut = '<a class="button" href="/login">Log in</a>';

const loggedIn = (user) => `<p>You are logged in as ${escaped(user.email)}.</p>
<a class="button" href="/messages">Call the API</a>
<a class="button" href="/logout">Log out</a>`;

const page = (content) => `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Fastify example</title>
<link rel="stylesheet" href="/style.css">
<main><h1>Fastify example</h1>${content}</main>
</html>`;

const escaped = (text) => text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);

await app.listen({ port: PORT, host: 'localhost' });
await startApi(API_PORT);
