// Chromium's virtual authenticators (WebAuthn), as a user's own device or a key that is plugged in.
import type { CDPSession } from 'playwright-core';

/**
 * Plugs in an authenticator that verifies its owner and keeps passkeys, and asks nobody; `WebAuthn.enable` comes before.
 * @param transport `internal`: of the device itself. @param over other options of the protocol.
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
