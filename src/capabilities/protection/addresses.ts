// Lists of client addresses in the tenant's protection settings.
import { addressList } from '../../http/addresses.ts';

export { addressKey, networkKey } from '../../http/addresses.ts';

/**
 * Each list is compiled once, because every login checks three of them. A change of the settings brings new arrays.
 */
const compiled = new WeakMap<readonly string[], (ip: string) => boolean>();

/** Returns whether a list of IP addresses and CIDR ranges contains an address. The list must not be mutated. */
export function isListed(list: readonly string[], ip: string): boolean {
  const known = compiled.get(list) ?? addressList(list);
  compiled.set(list, known);
  return known(ip);
}
