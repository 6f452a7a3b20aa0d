// Where the logins end that are for the console.
import type { OwnCallback } from '../engine/own-callbacks.ts';
import { addressesBelow } from '../engine/own-callbacks.ts';
import { CONSOLE_CLIENT } from '../records/administrators.ts';

/** The first page of the console. */
export const CONSOLE = '/console';

/** The public origins of the console and of everything else: the same, unless the console has a host of its own. */
export interface ConsoleOrigins {
  baseUrl: string;
  consoleUrl: string;
}

/** Where a page outside of the console is, for links and redirects of the console. @param path of it, with its query. */
export function outsideOf({ baseUrl, consoleUrl }: ConsoleOrigins, path: string): string {
  return consoleUrl === baseUrl ? path : `${baseUrl}${path}`;
}

/** What a page of the console says of its forms: they may lead to a login, which is at another host where the console has its own. */
export function formsLeadOutside({ baseUrl, consoleUrl }: ConsoleOrigins): { formAction?: string } {
  return consoleUrl === baseUrl ? {} : { formAction: baseUrl };
}

/** The one callback of the console. @param consoleUrl the console's public origin. */
export function consoleCallbacks(consoleUrl: string): OwnCallback {
  return {
    isFor: ({ client_id }) => client_id === CONSOLE_CLIENT,
    needsConsent: false,
    protocol: 'console',
    of: () => `${consoleUrl}${CONSOLE}/callback`,
    has: addressesBelow(consoleUrl, CONSOLE),
  };
}
