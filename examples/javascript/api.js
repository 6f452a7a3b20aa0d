// The API: it accepts access tokens that Gatehouse issued for it, with the scope that a route needs.
import cors from 'cors';
import express from 'express';
import { auth, requiredScopes } from 'express-oauth2-jwt-bearer';

const { PORT, AUTH0_DOMAIN, AUTH0_AUDIENCE } = process.env;

export function startApi(port) {
  const api = express();
  // Pages of the application may call it from their own origin.
  api.use(cors({ origin: `http://localhost:${PORT}` }));
  api.use(auth({ issuerBaseURL: `https://${AUTH0_DOMAIN}/`, audience: AUTH0_AUDIENCE }));
  api.get('/api/messages', requiredScopes('read:messages'), (request, response) => {
    response.json({ message: `The API knows you as ${request.auth.payload.sub}` });
  });
  api.listen(port, 'localhost');
}
