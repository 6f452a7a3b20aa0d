// Where the logins end of users who approve by e-mail.
import { addressesBelow, type OwnCallback } from '../../engine/own-callbacks.ts';

/** OpenID Connect CIBA Core 1.0 §10.1. */
export const CIBA_GRANT = 'urn:openid:params:grant-type:ciba';

/** Where a user approves. */
export const APPROVAL = '/approval';

/** The callbacks of the tenant's applications that ask so. @param baseUrl our public origin. */
export function approvalCallbacks(baseUrl: string): OwnCallback {
  return {
    isFor: ({ grant_types = [] }) => grant_types.includes(CIBA_GRANT),
    // First-party applications alone may ask.
    needsConsent: false,
    protocol: 'oidc-ciba-web-link',
    of: (clientId) => `${baseUrl}${APPROVAL}/callback/${encodeURIComponent(clientId)}`,
    has: addressesBelow(baseUrl, APPROVAL),
  };
}
