// Which addresses requests of ours may go to, when somebody else names them: the public Internet, and what the operator
// opens with OUTBOUND_ALLOW. Everything else is our own network, which others must not reach through us (SSRF).
import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import { addressList, isAddressRange, parsePlain } from './addresses.ts';

/** What an operator opens, beside the public Internet. */
export interface OutboundRules {
  /** Whether the operator opened it: any address, and http without TLS. */
  isOpened(host: string, address: string): boolean;
  /** Whether it may be connected to. */
  mayConnect(host: string, address: string): boolean;
}

/** What development opens for its own machine. */
export const LOOPBACK_RANGES: readonly string[] = ['127.0.0.0/8', '::1/128'];

/**
 * The rules of a list of CIDR ranges, addresses and host names. A host that is named may have any address.
 * @param entries valid ones, see {@link isOutboundEntry}.
 */
export function outboundRules(entries: readonly string[]): OutboundRules {
  const isListed = addressList(entries.filter(isAddressRange));
  const hosts = new Set(entries.filter((one) => !isAddressRange(one)).map(plainHost));
  const isOpened = (host: string, address: string) => {
    const plain = parsePlain(address)?.toString();
    return plain !== undefined && (hosts.has(plainHost(host)) || isListed(plain));
  };
  return { isOpened, mayConnect: (host, address) => isOpened(host, address) || isPublicAddress(address) };
}

/** Whether a text can be in the list: a CIDR range, an IP address or a host name, without scheme, port or path. */
export function isOutboundEntry(text: string): boolean {
  if (isAddressRange(text)) return parsePlain(text.split('/')[0] ?? '')?.kind() === kindOf(text);
  if (text.length > 253 || !/^[a-z0-9_-]+(\.[a-z0-9_-]+)*\.?$/i.test(text)) return false;
  // A name that is read as an address (127.1, 0x7f000001) would never be compared as a name.
  return URL.parse(`http://${text}/`)?.hostname === text.toLowerCase();
}

/** Whether an address has a user or a password in it (RFC 3986 §3.2.1): no request is made of one. False for what is none. */
export function hasUserInfo(address: string): boolean {
  const { username, password } = URL.parse(address) ?? { username: '', password: '' };
  return username !== '' || password !== '';
}

/** Whether a text is an address of HTTP, with TLS or without. */
export function isHttpAddress(text: string): boolean {
  return /^https?:$/.test(URL.parse(text)?.protocol ?? '');
}

/** Whether a text is an address of HTTP that a request can be made of; where it may go is decided when it is. */
export function isCallable(text: string): boolean {
  return isHttpAddress(text) && !hasUserInfo(text);
}

const kindOf = (range: string) => (isIP(range.split('/')[0] ?? '') === 6 ? 'ipv6' : 'ipv4');

const plainHost = (host: string) => host.toLowerCase().replace(/\.$/, '');

/** Azure's metadata and DNS address is a public one; those of other clouds are in the ranges below. */
const METADATA = new Set(['168.63.129.16']);
/** All global unicast addresses of IPv6 so far (RFC 4291 §2.4, IANA's registry). */
const GLOBAL_UNICAST = ipaddr.IPv6.parseCIDR('2000::/3');
/** RFC 6052 §2.1; not the prefix for local use of RFC 8215. */
const NAT64 = ipaddr.IPv6.parseCIDR('64:ff9b::/96');

/**
 * Whether an address is one of the public Internet: not private, loopback, link-local, shared (CGNAT), multicast,
 * unspecified, reserved, of a tunnel, or a cloud's metadata service (RFC 6890).
 * @returns false for a text that is no IP address.
 */
function isPublicAddress(text: string): boolean {
  const address = parsePlain(text);
  if (address === undefined) return false;
  if (address instanceof ipaddr.IPv4) {
    return address.range() === 'unicast' && !METADATA.has(address.toString());
  }
  // NAT64: the IPv4 address in its end is the one connected to.
  if (address.match(NAT64)) return isPublicAddress(address.toByteArray().slice(12).join('.'));
  return address.range() === 'unicast' && address.match(GLOBAL_UNICAST);
}
