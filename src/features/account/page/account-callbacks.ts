// The redirect URIs of logins to the account page.
import { addressesBelow, type ServerLoginCallback } from '../../../engine/client/server-login-callbacks.ts';

export const ACCOUNT = '/account';

/**
 * Returns the callbacks of the account page: users may log in to it by any first-party application.
 * @param baseUrl our public origin.
 */
export function accountCallbacks(baseUrl: string): ServerLoginCallback {
  return {
    isFor: isOwnApplication,
    // The page is the tenant's own, whichever application is used.
    needsConsent: false,
    protocol: 'account-page',
    act: 'account_page',
    of: (clientId) => `${baseUrl}${ACCOUNT}/callback/${encodeURIComponent(clientId)}`,
    has: addressesBelow(baseUrl, ACCOUNT),
  };
}

/** Returns whether an application is first-party and logs users in by a browser. */
export function isOwnApplication({
  is_first_party,
  grant_types,
}: {
  is_first_party?: boolean | undefined;
  grant_types?: readonly string[] | undefined;
}): boolean {
  return (
    is_first_party !== false && (grant_types === undefined || grant_types.includes('authorization_code'))
  );
}
