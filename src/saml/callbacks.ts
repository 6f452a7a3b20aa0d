// Where the logins end that service providers ask for (spec "SAML").
import type { OwnCallbacks } from '../engine/own-codes.ts';

/** The callbacks of the tenant's service providers. @param baseUrl our public origin. */
export function samlCallbacks(baseUrl: string): OwnCallbacks {
  const { origin } = new URL(baseUrl);
  return {
    isFor: ({ addons }) => addons !== undefined && 'samlp' in addons && addons.samlp !== undefined,
    of: (clientId) => `${baseUrl}/samlp/${encodeURIComponent(clientId)}/callback`,
    has: (address) => {
      const url = URL.parse(address);
      return url?.origin === origin && url.pathname.startsWith('/samlp/');
    },
  };
}
