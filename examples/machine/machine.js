import { AuthClient } from '@auth0/auth0-auth-js';
import { startApi } from './api.js';

const { API_PORT, AUTH0_DOMAIN, AUTH0_CLIENT_ID, AUTH0_CLIENT_SECRET, AUTH0_AUDIENCE } = process.env;

const api = startApi(API_PORT);

const client = new AuthClient({
  domain: AUTH0_DOMAIN,
  clientId: AUTH0_CLIENT_ID,
  clientSecret: AUTH0_CLIENT_SECRET,
});
const { accessToken } = await client.getTokenByClientCredentials({ audience: AUTH0_AUDIENCE });

const call = (method) =>
  fetch(`http://localhost:${API_PORT}/api/messages`, {
    method,
    headers: { authorization: `Bearer ${accessToken}` },
  });
console.log((await (await call('GET')).json()).message);
console.log(`To write, the API answers ${(await call('POST')).status}.`);

api.close();
