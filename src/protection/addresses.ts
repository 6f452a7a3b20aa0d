// Lists of client addresses in the tenant's protection settings.
import { addressList } from '../http/addresses.ts';

export { addressKey } from '../http/addresses.ts';

/** Whether a list of IP addresses and CIDR ranges has an address. */
export function isListed(list: readonly string[], ip: string): boolean {
  return addressList(list)(ip);
}
