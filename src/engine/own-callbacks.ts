// Where the logins end that we ask for ourselves, for something beside an application's own request.

/** Where logins of one kind end that we ask for ourselves: addresses of ours that no application may use. */
export interface OwnCallback {
  /** Whether logins to an application are asked for so. */
  isFor(client: Application): boolean;
  /** The callback of an application. */
  of(clientId: string): string;
  /** Whether an address is one, of any application, however it is written. */
  has(address: string): boolean;
  /** Whether tokens come of it, for which a third-party application needs its user's consent. */
  needsConsent: boolean;
  /** As actions are told how users log in. */
  protocol: string;
}

/** What of an application says which logins are asked for so. */
type Application = {
  client_id?: string | undefined;
  addons?: object | undefined;
  grant_types?: readonly string[] | undefined;
  is_first_party?: boolean | undefined;
};

/** The callbacks of all kinds. */
export interface OwnCallbacks {
  /** Those of an application. */
  of(client: Application & { client_id: string }): string[];
  /** @see OwnCallback.has */
  has(address: string): boolean;
  /** Whether a login that ends there needs no consent. */
  isWithoutConsent(address: string): boolean;
  /** @see OwnCallback.protocol */
  protocolOf(address: string): string | undefined;
}

/** The callbacks of these kinds. */
export function ownCallbacks(kinds: readonly OwnCallback[]): OwnCallbacks {
  return {
    of: (client) => kinds.filter((kind) => kind.isFor(client)).map((kind) => kind.of(client.client_id)),
    has: (address) => kinds.some((kind) => kind.has(address)),
    isWithoutConsent: (address) => kinds.some((kind) => kind.has(address) && !kind.needsConsent),
    protocolOf: (address) => kinds.find((kind) => kind.has(address))?.protocol,
  };
}

/**
 * Tells the addresses of one kind, however they are written: all below a path of ours.
 * @param baseUrl our public origin. @param path without a slash at its end.
 */
export function addressesBelow(baseUrl: string, path: string): OwnCallback['has'] {
  const { origin } = new URL(baseUrl);
  return (address) => {
    const url = URL.parse(address);
    return url?.origin === origin && url.pathname.startsWith(`${path}/`);
  };
}
