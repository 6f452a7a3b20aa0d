// What an MCP server does as an OAuth resource server: it says whose tokens it accepts, and verifies them.
import { OAuthError, OAuthErrorCode } from '@modelcontextprotocol/server';
import { createRemoteJWKSet, errors, jwtVerify } from 'jose';

/** Protected resource metadata (RFC 9728): by it agents find out where to get tokens. */
export const resourceMetadata = (resource, issuer, scopes) => ({
  resource,
  authorization_servers: [issuer],
  scopes_supported: scopes,
  bearer_methods_supported: ['header'],
});

/** Verifies access tokens that the issuer signed for this resource and for no other. */
export function tokenVerifier(resource, issuer) {
  const keys = createRemoteJWKSet(new URL('.well-known/jwks.json', issuer));
  const verifyAccessToken = async (token) => {
    const options = { issuer, audience: resource, algorithms: ['RS256'], requiredClaims: ['sub', 'exp'] };
    const { payload } = await jwtVerify(token, keys, options).catch((error) => {
      // Keys that could not be fetched say nothing about the token: another login would not help.
      if (!(error instanceof errors.JOSEError)) {
        console.error(`The keys of ${issuer} cannot be read: ${error.cause?.message ?? error.message}`);
        throw error;
      }
      throw new OAuthError(OAuthErrorCode.InvalidToken, error.message);
    });
    return {
      token,
      clientId: payload.azp,
      scopes: payload.scope?.split(' ') ?? [],
      expiresAt: payload.exp,
      extra: { user: payload.sub },
    };
  };
  return { verifyAccessToken };
}
