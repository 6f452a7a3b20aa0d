// Where the logins end that are for a device.
import { addressesBelow, type OwnCallback } from '../../engine/own-callbacks.ts';

/** RFC 8628 §3.4. */
export const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code';

/** Where a user code is typed. */
export const ACTIVATE = '/activate';

/** The callbacks of the tenant's applications on devices. @param baseUrl our public origin. */
export function deviceCallbacks(baseUrl: string): OwnCallback {
  return {
    isFor: ({ grant_types = [] }) => grant_types.includes(DEVICE_GRANT),
    needsConsent: true,
    protocol: 'oauth2-device-code',
    of: (clientId) => `${baseUrl}${ACTIVATE}/callback/${encodeURIComponent(clientId)}`,
    has: addressesBelow(baseUrl, ACTIVATE),
  };
}
