// One connection to a directory, to an address that was checked, with TLS before anything is said on it.
import { once } from 'node:events';
import net, { isIP, type Socket } from 'node:net';
import tls from 'node:tls';
import { Client } from 'ldapts';
import type { Outbound } from '../../http/outbound.ts';
import { OutboundError } from '../../http/outbound-error.ts';
import { certificatesOf, type LdapOptions } from '../../records/ldap.ts';

/** Time to connect, TLS included, milliseconds. */
const CONNECT_TIMEOUT = 5000;
const START_TLS = '1.3.6.1.4.1.1466.20037';

/** @throws OutboundError, or the error of the socket. */
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
    if (!isLdaps && options.LDAP_STARTTLS) await askForTls(socket, timeout);
    if (isLdaps || options.LDAP_STARTTLS) {
      socket = tls.connect({ socket, ...trust(host, options) });
      await once(socket, 'secureConnect', { signal });
    }
  } catch (thrown) {
    socket.destroy();
    throw thrown;
  }
  return clientOn(socket, timeout);
}

/**
 * A client of a socket. It never connects again by itself: that connection would have neither TLS nor a bind, and the next
 * password would go over it as it is.
 */
function clientOn(socket: Socket, timeout: number): Client {
  let isUsed = false;
  const createConnection = () => {
    if (isUsed) throw new Error('the connection to the directory was closed');
    isUsed = true;
    return socket;
  };
  // Its URL is never connected to.
  return new Client({ url: 'ldap://directory', timeout, createConnection });
}

/**
 * StartTLS (RFC 4511 §4.14), by a client that is used for nothing else: what somebody in between put behind the answer
 * is read by nobody, and cannot answer what is asked with TLS.
 */
async function askForTls(socket: Socket, timeout: number): Promise<void> {
  await clientOn(socket, timeout).exop(START_TLS);
  socket.removeAllListeners();
}

/** How the directory's certificate is verified: by the system's certificates and the connection's, for its host. */
function trust(host: string, { LDAP_CA: pem }: LdapOptions): tls.ConnectionOptions {
  const ca = pem === undefined ? {} : { ca: [...tls.getCACertificates('default'), ...certificatesOf(pem)] };
  return { host, ...(isIP(host) === 0 && { servername: host }), ...ca };
}
