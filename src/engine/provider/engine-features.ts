// The engine's features that are on, their algorithms and their paths.
import type { Configuration } from 'oidc-provider';
import { CREDENTIAL_ALGORITHMS } from '../../records/client-credentials.ts';
import { SIGNING_ALGS, TOKEN_ALGS } from '../../records/signing-algs.ts';
import { DPOP_ALGORITHMS } from '../binding/dpop.ts';
import { ENCRYPTION } from '../client/encryption.ts';

/** The engine's features that are on. Logout, userinfo and second factors are our own code. */
export const FEATURES: NonNullable<Configuration['features']> = {
  devInteractions: { enabled: false },
  // Tokens are signed by src/signing, in this process or by a key service.
  externalSigningSupport: { enabled: true, ack: 'experimental-01' },
  encryption: { enabled: true },
  pushedAuthorizationRequests: { enabled: true },
  jwtResponseModes: { enabled: true },
  rpInitiatedLogout: { enabled: false },
  clientCredentials: { enabled: true },
  revocation: {
    enabled: true,
    // Another client's token is neither revoked nor revealed (RFC 7009 §2.1).
    allowedPolicy: (_ctx, client, token) => token.clientId === client.clientId,
  },
};

/** The methods by which applications may authenticate. */
export const CLIENT_AUTHENTICATION = [
  'client_secret_basic',
  'client_secret_post',
  'private_key_jwt',
  'tls_client_auth',
  'self_signed_tls_client_auth',
  'none',
] as const;

/** The algorithms for signatures and encryption. */
export const ALGORITHMS: NonNullable<Configuration['enabledJWA']> = {
  clientAuthSigningAlgValues: [...CREDENTIAL_ALGORITHMS],
  idTokenSigningAlgValues: [...TOKEN_ALGS],
  authorizationSigningAlgValues: [...SIGNING_ALGS],
  ...ENCRYPTION,
  dPoPSigningAlgValues: [...DPOP_ALGORITHMS],
};

/** The paths of the engine's endpoints. */
export const ROUTES: NonNullable<Configuration['routes']> = {
  authorization: '/authorize',
  token: '/oauth/token',
  revocation: '/oauth/revoke',
  pushed_authorization_request: '/oauth/par',
  userinfo: '/userinfo',
  jwks: '/.well-known/jwks.json',
  end_session: '/oidc/logout',
};

/** Metadata that the engine lacks: request objects are read before the engine, which does not know of them. */
export const DISCOVERY: NonNullable<Configuration['discovery']> = {
  request_parameter_supported: true,
  request_object_signing_alg_values_supported: CREDENTIAL_ALGORITHMS,
};
