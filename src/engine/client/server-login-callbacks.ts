// The callbacks of logins that this server starts itself rather than for an authorization request of an application, such as
// those for another protocol's applications or for the approval of a device.

import type { UserAct } from '../../users/login.ts';

/** The callbacks of one kind of such logins: addresses of this server that no application may register. */
export interface ServerLoginCallback {
  /** Whether logins of this kind are started for an application. */
  isFor(client: Application): boolean;
  /** The callback of an application. */
  of(clientId: string): string;
  /** Whether an address is the callback of any application, in any spelling. */
  has(address: string): boolean;
  /** Whether such a login results in tokens, for which a third-party application needs the user's consent. */
  needsConsent: boolean;
  /** The `protocol` that actions see for such logins. */
  protocol: string;
  /** What such a login is for, if only the user may do that. */
  act: UserAct | undefined;
}

/** The members of an application that decide which kinds of logins are started for it. */
type Application = {
  client_id?: string | undefined;
  addons?: object | undefined;
  grant_types?: readonly string[] | undefined;
  is_first_party?: boolean | undefined;
};

/** The callbacks of all kinds. */
export interface ServerLoginCallbacks {
  of(client: Application & { client_id: string }): string[];
  /** @see ServerLoginCallback.has */
  has(address: string): boolean;
  /** Whether a login that ends there needs no consent. */
  isWithoutConsent(address: string): boolean;
  /** @see ServerLoginCallback.protocol */
  protocolOf(address: string): string | undefined;
  /** @see ServerLoginCallback.act */
  actOf(address: string): UserAct | undefined;
}

export function serverLoginCallbacks(kinds: readonly ServerLoginCallback[]): ServerLoginCallbacks {
  return {
    of: (client) => kinds.filter((kind) => kind.isFor(client)).map((kind) => kind.of(client.client_id)),
    has: (address) => kinds.some((kind) => kind.has(address)),
    isWithoutConsent: (address) => kinds.some((kind) => kind.has(address) && !kind.needsConsent),
    protocolOf: (address) => kinds.find((kind) => kind.has(address))?.protocol,
    actOf: (address) => kinds.find((kind) => kind.has(address))?.act,
  };
}

/**
 * Makes the test for the addresses of one kind, in any spelling: all those below a path of this server.
 * @param baseUrl our public origin. @param path without a slash at its end.
 */
export function addressesBelow(baseUrl: string, path: string): ServerLoginCallback['has'] {
  const { origin } = new URL(baseUrl);
  return (address) => {
    const url = URL.parse(address);
    return url?.origin === origin && url.pathname.startsWith(`${path}/`);
  };
}
