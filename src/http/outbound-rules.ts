// Decides which addresses the server may send requests to when someone else names them: the public Internet, and what
// the operator opens with OUTBOUND_ALLOW. All others may belong to the operator's own network, which others must not
// reach through this server (SSRF).
import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import { addressList, isAddressRange, parsePlain } from './addresses.ts';

/** The addresses that may be called. */
export interface OutboundRules {
  /** Reports whether the operator opened the address: it may be any address, and plain http is allowed. */
  isOpened(host: string, address: string): boolean;
  /** Reports whether a connection to the address is allowed. */
  mayConnect(host: string, address: string): boolean;
}

/** Ranges that are open by default in development. */
export const LOOPBACK_RANGES: readonly string[] = ['127.0.0.0/8', '::1/128'];

/**
 * Builds the rules from a list of CIDR ranges, addresses and host names. A named host may resolve to any address.
 * @param entries valid entries, see {@link isOutboundEntry}.
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

/**
 * Reports whether a text can be in the list: a CIDR range, an IP address or a host name, without scheme, port or
 * path.
 */
export function isOutboundEntry(text: string): boolean {
  if (isAddressRange(text)) return parsePlain(text.split('/')[0] ?? '')?.kind() === kindOf(text);
  if (text.length > 253 || !/^[a-z0-9_-]+(\.[a-z0-9_-]+)*\.?$/i.test(text)) return false;
  // A name that URL parsers read as an address (127.1, 0x7f000001) would never be compared as a name.
  return URL.parse(`http://${text}/`)?.hostname === text.toLowerCase();
}

/**
 * Reports whether an address contains a user or password (RFC 3986 §3.2.1), with which no request is sent. False for
 * text that is not an address.
 */
export function hasUserInfo(address: string): boolean {
  const { username, password } = URL.parse(address) ?? { username: '', password: '' };
  return username !== '' || password !== '';
}

/** Reports whether a text is an http or https address. */
export function isHttpAddress(text: string): boolean {
  return /^https?:$/.test(URL.parse(text)?.protocol ?? '');
}

/** Reports whether a request could be sent to a text. Whether its host may be called is decided when it is. */
export function isCallable(text: string): boolean {
  return isHttpAddress(text) && !hasUserInfo(text);
}

const kindOf = (range: string) => (isIP(range.split('/')[0] ?? '') === 6 ? 'ipv6' : 'ipv4');

const plainHost = (host: string) => host.toLowerCase().replace(/\.$/, '');

/** The metadata and DNS address of Azure is public; those of other clouds are in ranges that are not. */
const METADATA = new Set(['168.63.129.16']);
/** All global unicast addresses of IPv6 so far (RFC 4291 §2.4, IANA registry). */
const GLOBAL_UNICAST = ipaddr.IPv6.parseCIDR('2000::/3');
/** The well-known prefix of RFC 6052 §2.1; not the local-use prefix of RFC 8215. */
const NAT64 = ipaddr.IPv6.parseCIDR('64:ff9b::/96');

/**
 * Reports whether an address belongs to the public Internet: not private, loopback, link-local, shared (CGNAT),
 * multicast, unspecified, reserved, of a tunnel, or of a cloud's metadata service (RFC 6890).
 * @returns false for a text that is not an IP address.
 */
function isPublicAddress(text: string): boolean {
  const address = parsePlain(text);
  if (address === undefined) return false;
  if (address instanceof ipaddr.IPv4) {
    return address.range() === 'unicast' && !METADATA.has(address.toString());
  }
  // NAT64: the connection goes to the IPv4 address in the last 32 bits.
  if (address.match(NAT64)) return isPublicAddress(address.toByteArray().slice(12).join('.'));
  return address.range() === 'unicast' && address.match(GLOBAL_UNICAST);
}
