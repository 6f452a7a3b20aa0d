// Client addresses as keys of counters, and lists of them.
import { BlockList, isIP, isIPv6 } from 'node:net';

/**
 * What an address is counted by: an IPv6 customer has a whole /64 to come from (RFC 6177), so that is one;
 * IPv4 addresses on an IPv6 socket are themselves.
 */
export function addressKey(ip: string): string {
  const plain = unmapped(ip);
  if (!isIPv6(plain)) return plain;
  const [head = '', tail] = plain.split('%')[0]?.split('::') ?? [];
  const before = head === '' ? [] : head.split(':');
  const after = tail === undefined || tail === '' ? [] : tail.split(':');
  const groups =
    tail === undefined
      ? before
      : [...before, ...Array<string>(Math.max(0, 8 - before.length - after.length)).fill('0'), ...after];
  return `${groups
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':')}::/64`;
}

/** Whether a list of IP addresses and CIDR ranges has an address. */
export function isListed(list: readonly string[], ip: string): boolean {
  if (list.length === 0) return false;
  const plain = unmapped(ip);
  if (isIP(plain) === 0) return false;
  const ranges = new BlockList();
  for (const entry of list) {
    const [address = '', prefix] = entry.split('/');
    const family = isIPv6(address) ? 'ipv6' : 'ipv4';
    if (prefix === undefined) ranges.addAddress(address, family);
    else ranges.addSubnet(address, Number(prefix), family);
  }
  return ranges.check(plain, isIPv6(plain) ? 'ipv6' : 'ipv4');
}

/** IPv4 addresses on an IPv6 socket: `::ffff:127.0.0.1`. */
export function unmapped(ip: string): string {
  return ip.startsWith('::ffff:') && isIP(ip.slice(7)) === 4 ? ip.slice(7) : ip;
}
