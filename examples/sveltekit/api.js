// The API: it accepts access tokens that Gatehouse issued for it, with the scope that a route needs.
import express from 'express';
import { auth, requiredScopes } from 'express-oauth2-jwt-bearer';

const { API_PORT, AUTH0_DOMAIN, AUTH0_AUDIENCE } = process.env;

const api = express();
api.use(auth({ issuerBaseURL: `https://${AUTH0_DOMAIN}/`, audience: AUTH0_AUDIENCE }));
api.get('/api/messages', requiredScopes('read:messages'), (request, response) => {
  response.json({ message: `The API knows you as ${request.auth.payload.sub}` });
});
api.listen(API_PORT, 'localhost');
