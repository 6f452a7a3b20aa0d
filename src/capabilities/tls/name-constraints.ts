// Name constraints (RFC 5280 §4.2.1.10): the local CA may only sign for this machine and the server's own names, so
// that a key stolen from a developer's disk cannot impersonate other sites.
import { isIP } from 'node:net';
import { addressBytes, isLoopbackAddress } from '../../http/addresses.ts';

/** OID of id-ce-nameConstraints. */
export const NAME_CONSTRAINTS = '2.5.29.30';

/** The OID in DER. */
const OID_DER = Buffer.from('0603551d1e', 'hex');

/** Subtrees for this machine; `localhost` includes the names below it. */
const LOOPBACK = [
  dnsSubtree('localhost'),
  subtree(0x87, Buffer.from([127, 0, 0, 0, 255, 0, 0, 0])),
  ipSubtree('::1'),
];

/**
 * Returns the extension's value, which permits this machine and the hosts, and nothing else.
 * @param hosts DNS names and IP addresses.
 */
export function nameConstraints(hosts: readonly string[]): Buffer {
  const hostSubtrees = hosts.filter((host) => !isOfThisMachine(host)).map(hostSubtree);
  // SEQUENCE { permittedSubtrees [0] GeneralSubtrees }
  return der(0x30, der(0xa0, Buffer.concat([...LOOPBACK, ...hostSubtrees])));
}

/** Reports whether a certificate has name constraints. @param certificate DER. */
export function isConstrained(certificate: Buffer): boolean {
  return certificate.includes(OID_DER);
}

/**
 * Reports whether the constraints of a certificate made here permit a host. It searches the DER for the subtree of the
 * host or of a parent, because Node.js does not parse this extension.
 * @param certificate DER.
 */
export function permits(certificate: Buffer, host: string): boolean {
  if (isOfThisMachine(host)) return LOOPBACK.every((one) => certificate.includes(one));
  const names = isIP(host) === 0 ? parents(host).map(dnsSubtree) : [ipSubtree(host)];
  return names.some((name) => certificate.includes(name));
}

function isOfThisMachine(host: string): boolean {
  if (isIP(host) !== 0) return isLoopbackAddress(host);
  return parents(host.toLowerCase()).includes('localhost');
}

/** Returns a name and the names above it. */
function parents(name: string): string[] {
  const labels = name.split('.');
  return labels.map((_, index) => labels.slice(index).join('.'));
}

function hostSubtree(host: string): Buffer {
  return isIP(host) === 0 ? dnsSubtree(host) : ipSubtree(host);
}

/** GeneralSubtree { base dNSName [2] } */
function dnsSubtree(name: string): Buffer {
  return subtree(0x82, Buffer.from(name.toLowerCase(), 'latin1'));
}

/** GeneralSubtree { base iPAddress [7] }: the address and a mask of all ones. */
function ipSubtree(address: string): Buffer {
  const bytes = addressBytes(address);
  return subtree(0x87, Buffer.concat([bytes, Buffer.alloc(bytes.length, 0xff)]));
}

function subtree(tag: number, value: Buffer): Buffer {
  return der(0x30, der(tag, value));
}

/** Encodes tag, length and value (X.690 §8.1), with lengths below 64 KiB. */
function der(tag: number, value: Buffer): Buffer {
  const { length } = value;
  const size =
    length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), value]);
}
