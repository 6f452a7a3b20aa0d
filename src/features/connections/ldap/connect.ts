// Connects to a directory: to an address that the outbound policy allows, and with TLS before any request.
import { once } from 'node:events';
import net, { isIP, type Socket } from 'node:net';
import tls from 'node:tls';
import { Client } from 'ldapts';
import type { Outbound } from '../../../http/outbound.ts';
import { OutboundError } from '../../../http/outbound-error.ts';
import { certificatesOf, type LdapOptions } from '../../../records/ldap.ts';

/** Milliseconds to connect, TLS included. */
const CONNECT_TIMEOUT = 5000;
const START_TLS = '1.3.6.1.4.1.1466.20037';

/**
 * Connects to the directory of a connection, with TLS unless the operator allows its host without.
 * @param timeout of each request, milliseconds.
 * @throws OutboundError if the address is not allowed; else the error of the socket.
 */
export async function connect(outbound: Outbound, options: LdapOptions, timeout: number): Promise<Client> {
  const url = new URL(options.LDAP_URL);
  const isLdaps = url.protocol === 'ldaps:';
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
  const { isOpened, lookup } = await outbound.resolve(host);
  if (!isLdaps && !options.LDAP_STARTTLS && !isOpened) {
    throw new OutboundError('refused', `${host} is to be asked with TLS`);
  }
  const signal = AbortSignal.timeout(CONNECT_TIMEOUT);
  const port = url.port === '' ? (isLdaps ? 636 : 389) : Number(url.port);
  let socket: Socket = net.connect({ host, port, lookup });
  try {
    await once(socket, 'connect', { signal });
    if (!isLdaps && options.LDAP_STARTTLS) await startTls(socket, timeout);
    if (isLdaps || options.LDAP_STARTTLS) {
      socket = tls.connect({ socket, ...tlsOptions(host, options) });
      await once(socket, 'secureConnect', { signal });
    }
  } catch (thrown) {
    socket.destroy();
    throw thrown;
  }
  return clientOn(socket, timeout);
}

/**
 * Returns a client on a socket. It never reconnects by itself: the new connection would have neither TLS nor a bind, and the
 * next password would be sent over it in the clear.
 */
function clientOn(socket: Socket, timeout: number): Client {
  let isUsed = false;
  const createConnection = () => {
    if (isUsed) throw new Error('the connection to the directory was closed');
    isUsed = true;
    return socket;
  };
  // The URL is required but never used: createConnection returns the socket.
  return new Client({ url: 'ldap://directory', timeout, createConnection });
}

/**
 * Sends StartTLS (RFC 4511 §4.14) by a client that is used for nothing else. Bytes that an attacker appends to the plain
 * response are discarded with that client, so they cannot pass for the response to a request made under TLS.
 */
async function startTls(socket: Socket, timeout: number): Promise<void> {
  await clientOn(socket, timeout).exop(START_TLS);
  socket.removeAllListeners();
}

/** Returns the TLS options: the certificate must be valid for the host, by the system's certificates or the connection's. */
function tlsOptions(host: string, { LDAP_CA: pem }: LdapOptions): tls.ConnectionOptions {
  const ca = pem === undefined ? {} : { ca: [...tls.getCACertificates('default'), ...certificatesOf(pem)] };
  return { host, ...(isIP(host) === 0 && { servername: host }), ...ca };
}
