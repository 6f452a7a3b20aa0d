// Where the logins end that are for the console.
import type { OwnCallback } from '../engine/own-callbacks.ts';
import { addressesBelow } from '../engine/own-callbacks.ts';
import { CONSOLE_CLIENT } from '../records/administrators.ts';

/** The first page of the console. */
export const CONSOLE = '/console';

/** The one callback of the console. @param baseUrl our public origin. */
export function consoleCallbacks(baseUrl: string): OwnCallback {
  return {
    isFor: ({ client_id }) => client_id === CONSOLE_CLIENT,
    needsConsent: false,
    protocol: 'console',
    of: () => `${baseUrl}${CONSOLE}/callback`,
    has: addressesBelow(baseUrl, CONSOLE),
  };
}
