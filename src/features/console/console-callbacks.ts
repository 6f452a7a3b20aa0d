// Addresses of the console, and the callback of its own login.
import type { ServerLoginCallback } from '../../engine/client/server-login-callbacks.ts';
import { addressesBelow } from '../../engine/client/server-login-callbacks.ts';
import { CONSOLE_CLIENT } from '../../records/users/administrators.ts';

/** Path of the console's first page. */
export const CONSOLE = '/console';

/** The public URLs of the console and of everything else. They are the same unless the console has its own host. */
export interface ConsoleOrigins {
  baseUrl: string;
  consoleUrl: string;
}

/**
 * Returns the address of a page outside the console, for links and redirects.
 * @param path the page's path with its query.
 */
export function addressOutsideConsole({ baseUrl, consoleUrl }: ConsoleOrigins, path: string): string {
  return consoleUrl === baseUrl ? path : `${baseUrl}${path}`;
}

/**
 * Returns the page options for forms that may lead to a login, which is on another host when the console has its own.
 */
export function loginFormOptions({ baseUrl, consoleUrl }: ConsoleOrigins): { formsLeave: boolean } {
  return { formsLeave: consoleUrl !== baseUrl };
}

/** Returns the one callback of the console. @param consoleUrl the public URL of the console. */
export function consoleCallbacks(consoleUrl: string): ServerLoginCallback {
  return {
    isFor: ({ client_id }) => client_id === CONSOLE_CLIENT,
    needsConsent: false,
    protocol: 'console',
    act: 'administration',
    of: () => `${consoleUrl}${CONSOLE}/callback`,
    has: addressesBelow(consoleUrl, CONSOLE),
  };
}
