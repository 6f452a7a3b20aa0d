// Recognizes loopback hosts.
import { isIP } from 'node:net';
import { isLoopbackAddress } from './addresses.ts';

/**
 * Reports whether a host is always the local machine: `localhost` and the names below it (RFC 6761 §6.3), 127.0.0.0/8
 * (RFC 1122 §3.2.1.3), ::1 (RFC 4291 §2.5.3).
 * @param host a name or an address; an IPv6 address with or without its brackets.
 */
export function isLoopback(host: string): boolean {
  const bare = host.replace(/^\[(.*)\]$/, '$1').toLowerCase();
  return isIP(bare) === 0 ? /^(?:[^.]+\.)*localhost\.?$/.test(bare) : isLoopbackAddress(bare);
}
