// Fair shares of what is scarce. What is held or waits is grouped by the network and the address that it came from, so
// that whoever holds most gives way first, and each network has its turn, however many requests another one sends.
// docs/understand/decisions/passwords-protection.md#what-is-scarce-is-shared-by-network-then-by-address

/** Where something came from. */
export interface Origin {
  /** The network that an address shares with its neighbours. */
  network: string;
  address: string;
}

/** The origin of the server's own work, which no request caused. */
export const OWN: Origin = { network: '', address: '' };

export interface Shares<T> {
  /** Adds an item, which must not be there yet. */
  add(item: T, origin: Origin): void;
  /** Marks an item to give way only after the others of its address. */
  keep(item: T): void;
  /** Undoes {@link keep}. The item is again the newest of its address. */
  release(item: T): void;
  /** @returns whether it was there. */
  delete(item: T): boolean;
  has(item: T): boolean;
  size(): number;
  ofAddress(origin: Origin): number;
  /**
   * Returns whether an origin may hold one more of at most `max`, where nothing that is held can be taken back. A network may
   * hold four times as much as is free, so the first one gets at most four fifths and there is always something left for
   * others; an address may hold four times as much as its network has left.
   */
  mayHold(origin: Origin, max: number): boolean;
  /** Returns the item to give up: of the network that holds most, and there of the address that holds most. */
  toGiveUp(which: 'oldest' | 'newest'): T | undefined;
  oldestOf(origin: Origin): T | undefined;
  /** Removes and returns the next item: the networks take turns, and within a network its addresses. */
  next(): T | undefined;
  items(): Iterable<T>;
}

interface Holder {
  size: number;
}

interface Address<T> extends Holder {
  key: string;
  items: Set<T>;
  kept: Set<T>;
}

interface Network<T> extends Holder {
  key: string;
  /** In the order of their turns. */
  addresses: Map<string, Address<T>>;
  largest: Largest<Address<T>>;
}

/** The share that a holder may have of what is free, see {@link Shares.mayHold}. */
const TIMES_FREE = 4;

/** Makes empty shares. */
export function createShares<T>(): Shares<T> {
  const places = new Map<T, [Network<T>, Address<T>]>();
  const networks = new Map<string, Network<T>>();
  const largest = createLargest<Network<T>>();
  const resize = (network: Network<T>, address: Address<T>, by: 1 | -1): void => {
    largest.resize(network, by);
    network.largest.resize(address, by);
    if (address.size === 0) network.addresses.delete(address.key);
    if (network.size === 0) networks.delete(network.key);
  };
  const addressAt = ({ network, address }: Origin) => networks.get(network)?.addresses.get(address);
  const remove = (item: T): boolean => {
    const place = places.get(item);
    if (place === undefined) return false;
    const [network, address] = place;
    places.delete(item);
    if (!address.items.delete(item)) address.kept.delete(item);
    resize(network, address, -1);
    return true;
  };
  return {
    add: (item, origin) => {
      const network = getOrSet(networks, origin.network, newNetwork<T>);
      const address = getOrSet(network.addresses, origin.address, newAddress<T>);
      address.items.add(item);
      places.set(item, [network, address]);
      resize(network, address, 1);
    },
    keep: (item) => {
      const address = places.get(item)?.[1];
      if (address?.items.delete(item)) address.kept.add(item);
    },
    release: (item) => {
      const address = places.get(item)?.[1];
      if (address?.kept.delete(item)) address.items.add(item);
    },
    delete: remove,
    has: (item) => places.has(item),
    size: () => places.size,
    ofAddress: (origin) => addressAt(origin)?.size ?? 0,
    mayHold: (origin, max) => {
      const left = TIMES_FREE * (max - places.size) - (networks.get(origin.network)?.size ?? 0);
      return left > 0 && (addressAt(origin)?.size ?? 0) < TIMES_FREE * left;
    },
    toGiveUp: (which) => {
      const address = largest.first()?.largest.first();
      return address && (which === 'oldest' ? oldest(address) : newest(address));
    },
    oldestOf: (origin) => {
      const address = addressAt(origin);
      return address && oldest(address);
    },
    next: () => {
      const item = takeTurn(networks);
      if (item !== undefined) remove(item);
      return item;
    },
    items: () => places.keys(),
  };
}

/** The newest is only given up where there is no other, so that an address can always begin anew. */
function oldest<T>({ items, kept }: Address<T>): T | undefined {
  return (items.size > 1 ? undefined : firstOf(kept)) ?? firstOf(items);
}

function newest<T>({ items, kept }: Address<T>): T | undefined {
  return [...(items.size > 0 ? items : kept)].at(-1);
}

const newNetwork = <T>(key: string): Network<T> => ({
  key,
  size: 0,
  addresses: new Map(),
  largest: createLargest(),
});

const newAddress = <T>(key: string): Address<T> => ({ key, size: 0, items: new Set(), kept: new Set() });

interface Largest<H> {
  resize(holder: H, by: 1 | -1): void;
  first(): H | undefined;
}

/** Finds the largest of many holders whose sizes change by one. */
function createLargest<H extends Holder>(): Largest<H> {
  const bySize = new Map<number, Set<H>>();
  let max = 0;
  return {
    resize: (holder, by) => {
      const before = bySize.get(holder.size);
      before?.delete(holder);
      if (before?.size === 0) bySize.delete(holder.size);
      holder.size += by;
      if (holder.size > 0) getOrSet(bySize, holder.size, () => new Set<H>()).add(holder);
      // The largest has shrunk by one, if at all.
      max = Math.max(bySize.has(max) ? max : max - 1, holder.size);
    },
    first: () => firstOf(bySize.get(max)),
  };
}

function getOrSet<K, V>(map: Map<K, V>, key: K, make: (key: K) => V): V {
  const value = map.get(key) ?? make(key);
  map.set(key, value);
  return value;
}

/** Returns the item whose turn it is. The next turn is that of another network, and there of another address. */
function takeTurn<T>(networks: Map<string, Network<T>>): T | undefined {
  const network = firstOf(networks.values());
  const address = firstOf(network?.addresses.values());
  if (network === undefined || address === undefined) return undefined;
  moveToEnd(network.addresses, address);
  moveToEnd(networks, network);
  return firstOf(address.items) ?? firstOf(address.kept);
}

function moveToEnd<V extends { key: string }>(turns: Map<string, V>, one: V): void {
  if (turns.delete(one.key)) turns.set(one.key, one);
}

function firstOf<T>(items: Iterable<T> | undefined): T | undefined {
  for (const item of items ?? []) return item;
  return undefined;
}
