// Chromium's virtual authenticators (WebAuthn): the user's own device, or a security key.
import type { CDPSession } from 'playwright-core';

/**
 * Adds an authenticator that verifies its user, stores passkeys, and does not prompt; call `WebAuthn.enable` first.
 * @param transport `internal`: in the device itself.
 * @param over other options of the protocol.
 * @returns its id.
 */
export async function plugInKey(
  cdp: CDPSession,
  transport: 'internal' | 'usb' = 'internal',
  over: object = {},
): Promise<string> {
  const options = {
    protocol: 'ctap2' as const,
    transport,
    hasResidentKey: true,
    hasUserVerification: true,
    isUserVerified: true,
    automaticPresenceSimulation: true,
    ...over,
  };
  return (await cdp.send('WebAuthn.addVirtualAuthenticator', { options })).authenticatorId;
}
