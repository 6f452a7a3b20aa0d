// The callbacks of logins for a device.
import { addressesBelow, type ServerLoginCallback } from '../../../engine/client/server-login-callbacks.ts';

/** The grant type (RFC 8628 §3.4). */
export const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code';

/** Path of the page where a user code is typed. */
export const ACTIVATION_PATH = '/activate';

/** Returns the callbacks for applications with the device code grant. @param baseUrl our public origin. */
export function deviceCallbacks(baseUrl: string): ServerLoginCallback {
  return {
    isFor: ({ grant_types = [] }) => grant_types.includes(DEVICE_GRANT),
    needsConsent: true,
    protocol: 'oauth2-device-code',
    act: 'approval',
    of: (clientId) => `${baseUrl}${ACTIVATION_PATH}/callback/${encodeURIComponent(clientId)}`,
    has: addressesBelow(baseUrl, ACTIVATION_PATH),
  };
}
