// IP addresses and ranges.
import { BlockList, isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import type { Origin } from '../runtime/shares.ts';

/** @returns undefined when the text is not an IP address. */
function parse(text: string): ipaddr.IPv4 | ipaddr.IPv6 | undefined {
  // ipaddr.js alone would also take other notations of IPv4 (10, 0x7f.1, 010.0.0.1), and read ::1.2.3.4 as IPv4.
  if (isIP(text) === 0) return undefined;
  if (isIP(text) === 4) return ipaddr.parse(text);
  return ipaddr.parse(new URL(`http://[${text.split('%')[0]}]`).hostname.slice(1, -1));
}

/**
 * Parses an IP address; an IPv4-mapped IPv6 address (`::ffff:127.0.0.1`) becomes IPv4.
 * @returns undefined for other text.
 */
export function parsePlain(text: string): ipaddr.IPv4 | ipaddr.IPv6 | undefined {
  const address = parse(text);
  return address instanceof ipaddr.IPv6 && address.isIPv4MappedAddress() ? address.toIPv4Address() : address;
}

/** An address with the port that it was requested from, or in the brackets of a URI (RFC 3986 §3.2.2). */
const WITH_PORT = /^(?:([\d.]{7,15}):\d{1,5}|\[([\da-f.:]{2,45})\](?::\d{1,5})?)$/i;

/**
 * Azure's gateways and IIS add the client's port: `192.0.2.1:51008`, `[2001:db8::1]:51008`. An IPv6 address with a port
 *   but no brackets is not told from one without.
 * @returns undefined when it is not an address.
 */
export function forwardedAddress(element: string): string | undefined {
  const text = element.trim();
  const [, v4, v6] = WITH_PORT.exec(text) ?? [];
  if (v4 !== undefined) return isIP(v4) === 4 ? v4 : undefined;
  if (v6 !== undefined) return isIP(v6) === 6 ? v6 : undefined;
  return isIP(text) === 0 ? undefined : text;
}

export function isAddressRange(text: string): boolean {
  const [address = ''] = text.split('/');
  // Zone ids (RFC 4007 §11) name a local interface and make no sense in a list.
  if (isIP(address) === 0 || address.includes('%')) return false;
  return address === text || ipaddr.isValidCIDR(text);
}

/** Reports whether an address is in 127.0.0.0/8 (RFC 1122 §3.2.1.3) or is ::1 (RFC 4291 §2.5.3). */
export function isLoopbackAddress(text: string): boolean {
  return parsePlain(text)?.range() === 'loopback';
}

/** Returns an address in network byte order, 4 or 16 bytes. @throws Error when it is not an address. */
export function addressBytes(text: string): Buffer {
  const address = parse(text);
  if (address === undefined) throw new Error(`${text} is no IP address`);
  return Buffer.from(address.toByteArray());
}

// docs/understand/decisions/passwords-protection.md#ipv6-addresses-are-counted-by-their-64
/**
 * Returns the key under which requests of an address are counted. For IPv6 that is its /64, because every customer
 * has at least a /64 (RFC 6177).
 * @returns the text itself when it is not an address.
 */
export function addressKey(text: string): string {
  if (isIP(text) === 4) return text;
  const address = parsePlain(text);
  if (address === undefined) return text;
  if (address instanceof ipaddr.IPv4) return address.toString();
  const network = address.parts.slice(0, 4).map((group) => group.toString(16));
  return `${network.join(':')}::/64`;
}

/**
 * Returns the network that an address probably shares with its provider: the first 24 bits of IPv4, the first 48 of
 * IPv6.
 */
export function networkKey(text: string): string {
  // Every request is counted by its network, and parsing takes longer than counting.
  if (isIP(text) === 4) return `${text.slice(0, text.lastIndexOf('.'))}.0/24`;
  const address = parsePlain(text);
  if (address === undefined) return text;
  if (address instanceof ipaddr.IPv4) return `${address.octets.slice(0, 3).join('.')}.0/24`;
  return `${address.parts
    .slice(0, 3)
    .map((group) => group.toString(16))
    .join(':')}::/48`;
}

/** Returns where an address is from, for fair shares. */
export function originOf(ip: string): Origin {
  return { network: networkKey(ip), address: addressKey(ip) };
}

/** @returns a function that reports whether an address is in the list; false for other text. */
export function addressList(ranges: readonly string[]): (address: string) => boolean {
  const list = new BlockList();
  for (const range of ranges) {
    const [address = '', prefix] = range.split('/');
    if (prefix === undefined) list.addAddress(address, familyOf(address));
    else list.addSubnet(address, Number(prefix), familyOf(address));
  }
  return (address) => isIP(address) !== 0 && list.check(address, familyOf(address));
}

const familyOf = (address: string) => (isIP(address) === 6 ? 'ipv6' : 'ipv4');
