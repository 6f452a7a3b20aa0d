// The API: it accepts access tokens that Gatehouse issued for it, with the scope that a route needs.
import express from 'express';
import { auth, requiredScopes } from 'express-oauth2-jwt-bearer';

const { AUTH0_DOMAIN, AUTH0_AUDIENCE } = process.env;

export function startApi(port) {
  const api = express();
  api.use(auth({ issuerBaseURL: `https://${AUTH0_DOMAIN}/`, audience: AUTH0_AUDIENCE }));
  api.get('/api/messages', requiredScopes('read:messages'), (request, response) => {
    response.json({ message: `The API knows you as ${request.auth.payload.sub}` });
  });
  api.post('/api/messages', requiredScopes('write:messages'), (_request, response) => {
    response.status(201).end();
  });
  // The SDK's errors have a status.
  api.use((error, _request, response, _next) => {
    response
      .status(error.status ?? 500)
      .set(error.headers ?? {})
      .json({ error: error.message });
  });
  return api.listen(port, 'localhost');
}
