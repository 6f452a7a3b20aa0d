// Lists of client addresses in the tenant's protection settings.
import { addressList } from '../http/addresses.ts';

export { addressKey, networkKey } from '../http/addresses.ts';

/** Compiled once for each list, because every login asks three times; the settings are read anew when they change. */
const compiled = new WeakMap<readonly string[], (ip: string) => boolean>();

/** Whether a list of IP addresses and CIDR ranges, which does not change, has an address. */
export function isListed(list: readonly string[], ip: string): boolean {
  const known = compiled.get(list) ?? addressList(list);
  compiled.set(list, known);
  return known(ip);
}
