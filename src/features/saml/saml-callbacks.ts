// The redirect URIs of logins that service providers request (docs/reference/wire/saml.md).
import { addressesBelow, type ServerLoginCallback } from '../../engine/client/server-login-callbacks.ts';

/** Returns the callbacks of the tenant's service providers. @param baseUrl our public origin. */
export function samlCallbacks(baseUrl: string): ServerLoginCallback {
  return {
    isFor: ({ addons }) => addons !== undefined && 'samlp' in addons && addons.samlp !== undefined,
    needsConsent: false,
    protocol: 'samlp',
    act: undefined,
    of: (clientId) => `${baseUrl}/samlp/${encodeURIComponent(clientId)}/callback`,
    has: addressesBelow(baseUrl, '/samlp'),
  };
}
