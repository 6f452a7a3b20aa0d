// Which addresses are this very machine, whatever network it is on.
import { isIP } from 'node:net';

/**
 * Whether a host is always this machine: `localhost` and the names below it (RFC 6761 §6.3), 127.0.0.0/8
 * (RFC 1122 §3.2.1.3), ::1 (RFC 4291 §2.5.3).
 * @param host a name or an address; an IPv6 address with or without its brackets.
 */
export function isLoopback(host: string): boolean {
  const bare = host.replace(/^\[(.*)\]$/, '$1').toLowerCase();
  // IPv4 addresses on an IPv6 socket: `::ffff:127.0.0.1`.
  const address = bare.startsWith('::ffff:') && isIP(bare.slice(7)) === 4 ? bare.slice(7) : bare;
  if (isIP(address) === 4) return address.startsWith('127.');
  if (isIP(address) === 6) return address === '::1';
  return /^(?:[^.]+\.)*localhost\.?$/.test(address);
}
