// The callbacks of logins of users who approve at the page.
import { addressesBelow, type ServerLoginCallback } from '../../../engine/client/server-login-callbacks.ts';

/** The grant type (OpenID Connect CIBA Core 1.0 §10.1). */
export const CIBA_GRANT = 'urn:openid:params:grant-type:ciba';

/** Path of the page where a user approves. */
export const APPROVAL_PATH = '/approval';

/** Returns the callbacks for applications with the CIBA grant. @param baseUrl our public origin. */
export function approvalCallbacks(baseUrl: string): ServerLoginCallback {
  return {
    isFor: ({ grant_types = [] }) => grant_types.includes(CIBA_GRANT),
    // Only first-party applications may use CIBA.
    needsConsent: false,
    protocol: 'oidc-ciba-web-link',
    act: 'approval',
    of: (clientId) => `${baseUrl}${APPROVAL_PATH}/callback/${encodeURIComponent(clientId)}`,
    has: addressesBelow(baseUrl, APPROVAL_PATH),
  };
}
