// The API: it accepts access tokens that Gatehouse issued for it, with the scope that a route needs.
import fastify from 'fastify';
import { createRemoteJWKSet, errors, jwtVerify } from 'jose';

const { AUTH0_DOMAIN, AUTH0_AUDIENCE } = process.env;
const issuer = `https://${AUTH0_DOMAIN}/`;
const keys = createRemoteJWKSet(new URL('.well-known/jwks.json', issuer));

/** Refuses requests without an access token for this API, or without the scope (RFC 6750 §3). */
const requiresScope = (scope) => async (request, reply) => {
  const refuse = (status, challenge) => reply.code(status).header('www-authenticate', challenge).send();
  const [, token] = /^Bearer (\S+)$/i.exec(request.headers.authorization ?? '') ?? [];
  if (token === undefined) return refuse(401, 'Bearer');
  try {
    const options = { issuer, audience: AUTH0_AUDIENCE, algorithms: ['RS256'] };
    request.claims = (await jwtVerify(token, keys, options)).payload;
  } catch (error) {
    if (!(error instanceof errors.JOSEError)) throw error;
    return refuse(401, 'Bearer error="invalid_token"');
  }
  if (!request.claims.scope?.split(' ').includes(scope)) {
    return refuse(403, `Bearer error="insufficient_scope", scope="${scope}"`);
  }
};

export async function startApi(port) {
  const api = fastify();
  api.decorateRequest('claims', null);
  api.get('/api/messages', { preHandler: requiresScope('read:messages') }, async (request) => ({
    message: `The API knows you as ${request.claims.sub}`,
  }));
  await api.listen({ port, host: 'localhost' });
}
