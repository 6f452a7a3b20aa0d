// A small API: each user has notes. It trusts access tokens of one issuer, with the scope that a route needs.
import express from 'express';
import { auth, requiredScopes } from 'express-oauth2-jwt-bearer';

export function createApi({ issuer, audience }) {
  const notes = new Map();
  const ofUser = ({ auth: { payload } }) => notes.get(payload.sub) ?? [];
  const api = express();
  api.use(express.json());
  api.use(auth({ issuerBaseURL: issuer, audience }));
  api.get('/notes', requiredScopes('read:notes'), (request, response) => {
    response.json(ofUser(request));
  });
  api.post('/notes', requiredScopes('write:notes'), (request, response) => {
    notes.set(request.auth.payload.sub, [...ofUser(request), request.body.text]);
    response.status(201).end();
  });
  // The SDK's errors have a status.
  api.use((error, _request, response, _next) => {
    response
      .status(error.status ?? 500)
      .set(error.headers ?? {})
      .json({ error: error.message });
  });
  return api;
}
