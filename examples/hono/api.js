// The API: it accepts access tokens that Gatehouse issued for it, with the scope that a route needs.
import { serve } from '@hono/node-server';
import { Hono } from 'hono';
import { createRemoteJWKSet, errors, jwtVerify } from 'jose';

const { AUTH0_DOMAIN, AUTH0_AUDIENCE } = process.env;
const issuer = `https://${AUTH0_DOMAIN}/`;
const keys = createRemoteJWKSet(new URL('.well-known/jwks.json', issuer));

/** Refuses requests without an access token for this API, or without the scope (RFC 6750 §3). */
const requiresScope = (scope) => async (c, next) => {
  const refuse = (status, challenge) => c.body(null, status, { 'www-authenticate': challenge });
  const [, token] = /^Bearer (\S+)$/i.exec(c.req.header('authorization') ?? '') ?? [];
  if (token === undefined) return refuse(401, 'Bearer');
  try {
    const options = { issuer, audience: AUTH0_AUDIENCE, algorithms: ['RS256'] };
    c.set('claims', (await jwtVerify(token, keys, options)).payload);
  } catch (error) {
    if (!(error instanceof errors.JOSEError)) throw error;
    return refuse(401, 'Bearer error="invalid_token"');
  }
  if (!c.get('claims').scope?.split(' ').includes(scope)) {
    return refuse(403, `Bearer error="insufficient_scope", scope="${scope}"`);
  }
  return next();
};

export function startApi(port) {
  const api = new Hono();
  api.get('/api/messages', requiresScope('read:messages'), (c) =>
    c.json({ message: `The API knows you as ${c.get('claims').sub}` }),
  );
  serve({ fetch: api.fetch, port, hostname: 'localhost' });
}
