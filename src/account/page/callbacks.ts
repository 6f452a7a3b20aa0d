// Where the logins end that are for the account page.
import { addressesBelow, type OwnCallback } from '../../engine/own-callbacks.ts';

/** The page of one's own account. */
export const ACCOUNT = '/account';

/** The callbacks of the tenant's own applications: any of them may lead its users there. @param baseUrl our public origin. */
export function accountCallbacks(baseUrl: string): OwnCallback {
  return {
    isFor: isOwnApplication,
    // The page is the tenant's own, whichever application its user came from.
    needsConsent: false,
    protocol: 'account-page',
    of: (clientId) => `${baseUrl}${ACCOUNT}/callback/${encodeURIComponent(clientId)}`,
    has: addressesBelow(baseUrl, ACCOUNT),
  };
}

/** Whether users log in to an application of the tenant itself in a browser. */
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
