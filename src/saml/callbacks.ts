// Where the logins end that service providers ask for (spec "SAML").
import type { OwnCallback } from '../engine/own-callbacks.ts';

/** The callbacks of the tenant's service providers. @param baseUrl our public origin. */
export function samlCallbacks(baseUrl: string): OwnCallback {
  const { origin } = new URL(baseUrl);
  return {
    isFor: ({ addons }) => addons !== undefined && 'samlp' in addons && addons.samlp !== undefined,
    needsConsent: false,
    protocol: 'samlp',
    of: (clientId) => `${baseUrl}/samlp/${encodeURIComponent(clientId)}/callback`,
    has: (address) => {
      const url = URL.parse(address);
      return url?.origin === origin && url.pathname.startsWith('/samlp/');
    },
  };
}
