// Serves the page, the SDK, and what the page has to know.
import { createRequire } from 'node:module';
import { dirname } from 'node:path';
import express from 'express';

const { PORT, AUTH0_DOMAIN, AUTH0_CLIENT_ID } = process.env;
const sdk = createRequire(import.meta.url).resolve('@auth0/auth0-spa-js/dist/auth0-spa-js.production.js');

const app = express();
app.use(express.static('public'));
app.use('/sdk', express.static(dirname(sdk)));
app.get('/config.json', (_request, response) => {
  response.json({ domain: AUTH0_DOMAIN, clientId: AUTH0_CLIENT_ID });
});
app.listen(PORT, 'localhost');
