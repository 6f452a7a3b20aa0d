// Serves the files of the application and the script of the SDK, and starts the API.
import { findPackageJSON } from 'node:module';
import { dirname, join } from 'node:path';
import express from 'express';
import { startApi } from './api.js';

const { PORT, API_PORT, AUTH0_DOMAIN, AUTH0_CLIENT_ID, AUTH0_AUDIENCE } = process.env;

const app = express();
app.use(express.static('public'));
const sdk = dirname(findPackageJSON('@auth0/auth0-spa-js', import.meta.url));
app.use('/sdk', express.static(join(sdk, 'dist')));
app.get('/configuration.json', (_request, response) => {
  response.json({
    domain: AUTH0_DOMAIN,
    clientId: AUTH0_CLIENT_ID,
    audience: AUTH0_AUDIENCE,
    api: `http://localhost:${API_PORT}`,
  });
});

app.listen(PORT, 'localhost');
startApi(API_PORT);
