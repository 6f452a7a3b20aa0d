// Serves the page, the SDK, what the page has to know, and the API.
import { createRequire } from 'node:module';
import { dirname } from 'node:path';
import express from 'express';
import { auth, requiredScopes } from 'express-oauth2-jwt-bearer';

const { PORT, AUTH0_DOMAIN, AUTH0_CLIENT_ID, AUTH0_AUDIENCE } = process.env;
const sdk = createRequire(import.meta.url).resolve('auth0-js/dist/auth0.min.js');

const app = express();
app.use(express.static('public'));
app.use('/sdk', express.static(dirname(sdk)));
app.get('/config.json', (_request, response) => {
  response.json({ domain: AUTH0_DOMAIN, clientID: AUTH0_CLIENT_ID, audience: AUTH0_AUDIENCE });
});

// It accepts access tokens that Gatehouse issued for it, with the scope that a route needs.
app.use('/api', auth({ issuerBaseURL: `https://${AUTH0_DOMAIN}/`, audience: AUTH0_AUDIENCE }));
app.get('/api/messages', requiredScopes('read:messages'), (request, response) => {
  response.json({ message: `The API knows you as ${request.auth.payload.sub}` });
});

app.listen(PORT, 'localhost');
