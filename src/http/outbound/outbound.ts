// The one HTTP client for every address that a configuration, a script or a stranger names. It connects only to
// addresses that it has resolved and checked itself, so that a name cannot resolve to another address in between (DNS
// rebinding). It ignores proxies of the environment and aborts responses that are too large or too slow.
import { lookup as systemLookup } from 'node:dns/promises';
import http from 'node:http';
import https from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import ipaddr from 'ipaddr.js';
import type { Tracing } from '../../runtime/tracing.ts';
import { addressList, isAddressRange, parsePlain } from '../addresses.ts';
import { OutboundError } from './outbound-error.ts';
import { exchange } from './outbound-exchange.ts';

/** An address of a host, as `node:dns` returns it. */
export interface ResolvedAddress {
  address: string;
  family: number;
}

/** Options beside those of `fetch`. */
export interface OutboundInit extends RequestInit {
  /** Time for the whole exchange, including redirects and body, milliseconds; 10,000 by default. */
  timeout?: number;
  /** The maximum size of the body, decompressed, bytes; 1 MiB by default. */
  maxBytes?: number;
  /** Whether to return when the head has arrived, without reading the body. */
  headOnly?: boolean;
  /**
   * The host to connect to, with a port if it is not that of the address, which TLS and `Host` go on naming: for a server that has
   * a name that leads elsewhere. Redirects are then returned, not followed.
   */
  via?: string;
}

/** Checked addresses for a connection that is not HTTP (LDAP). */
interface OutboundConnection {
  /** Whether the operator opened all addresses: only then the connection may do without TLS. */
  isOpened: boolean;
  addresses: readonly ResolvedAddress[];
  /** For `net.connect` and `tls.connect`: returns the checked addresses without asking the DNS again. */
  lookup: LookupFunction;
}

export interface Outbound {
  // docs/understand/decisions/requests.md#requests-to-addresses-that-others-name-use-nodes-own-http-and-https
  /**
   * Sends a request as `fetch` does, to https addresses, and to http addresses that the operator opened. Up to five
   * redirects are followed, unless `redirect` says otherwise; credentials are not sent to another origin.
   * @returns a response whose body has been read.
   * @throws OutboundError when it fails; TypeError for an invalid request; the reason of `signal` when that aborts.
   */
  fetch(input: string | URL | Request, init?: OutboundInit): Promise<Response>;
  /**
   * @param host a name or an address; an IPv6 address with or without its brackets.
   * @throws OutboundError when the host has no address, or none that is allowed.
   */
  resolve(host: string): Promise<OutboundConnection>;
}

interface OutboundDependencies {
  rules: OutboundRules;
  /** Returns all addresses of a name; the system's resolver by default. */
  lookup?: (host: string) => Promise<ResolvedAddress[]>;
}

/** Default time for a request, milliseconds. */
const TIMEOUT = 10_000;
/** Default maximum size of a body, bytes. */
const MAX_BYTES = 1024 * 1024;
const MAX_REDIRECTS = 5;

/** Creates the function that finds the addresses of a host and keeps those that may be called. */
function resolver(
  rules: OutboundRules,
  lookup: NonNullable<OutboundDependencies['lookup']>,
): Outbound['resolve'] {
  return async (hostname) => {
    const host = hostname.replace(/^\[(.*)\]$/, '$1');
    const all = isIP(host) === 0 ? await lookup(host).catch(noAddress(host)) : [literal(host)];
    const addresses = all.filter(({ address }) => rules.mayConnect(host, address));
    if (all.length === 0) noAddress(host)();
    if (addresses.length === 0) throw new OutboundError('refused', `${host} is not a public address`);
    return {
      isOpened: addresses.every(({ address }) => rules.isOpened(host, address)),
      addresses,
      lookup: fixedLookup(addresses),
    };
  };
}

export function createOutbound({
  rules,
  lookup = (host) => systemLookup(host, { all: true }),
}: OutboundDependencies): Outbound {
  // Own agents: the global ones may use a proxy (NODE_USE_ENV_PROXY). Connections are not kept alive: a request sent
  // while the other side closes the connection is lost, and may not be sent twice.
  const agents = { 'http:': new http.Agent(), 'https:': new https.Agent() };
  const resolve = resolver(rules, lookup);
  const sendOnce = async (
    request: Request,
    body: Buffer | undefined,
    init: OutboundInit,
    signal: AbortSignal,
  ) => {
    const url = new URL(request.url);
    if (url.protocol !== 'https:' && url.protocol !== 'http:') {
      throw new OutboundError('refused', `${url.protocol} is neither https nor http`);
    }
    const peer = init.via === undefined ? url : new URL(`${url.protocol}//${init.via}`);
    const { isOpened, lookup: pinned } = await unlessAborted(signal, resolve(peer.hostname));
    if (url.protocol === 'http:' && !isOpened) {
      throw new OutboundError('refused', `${peer.hostname} is to be called by https`);
    }
    return exchange({
      request,
      ...(init.via !== undefined && { peer }),
      body,
      agent: agents[url.protocol],
      lookup: pinned,
      signal,
      maxBytes: init.maxBytes ?? MAX_BYTES,
      headOnly: init.headOnly === true,
    });
  };
  return {
    resolve,
    fetch: async (input, init = {}) => {
      const { timeout = TIMEOUT, maxBytes: _, headOnly: __, via, ...rest } = init;
      const timeoutSignal = AbortSignal.timeout(timeout);
      let request = requestOf(input, {
        ...(rest as RequestInit),
        ...(via !== undefined && { redirect: 'manual' }),
      });
      const signal = AbortSignal.any([request.signal, timeoutSignal]);
      try {
        let body = request.body === null ? undefined : Buffer.from(await request.arrayBuffer());
        for (let redirects = 0; ; redirects++) {
          const response = await sendOnce(request, body, init, signal);
          const target = redirectTarget(request, response);
          if (target === undefined) return response;
          if (redirects === MAX_REDIRECTS) throw new OutboundError('redirects', 'it redirects too often');
          request = redirectedRequest(request, response.status, target);
          if (request.method === 'GET' || request.method === 'HEAD') body = undefined;
        }
      } catch (thrown) {
        if (timeoutSignal.aborted && !request.signal.aborted) {
          throw new OutboundError('timeout', `${hostOf(request)} did not answer in time`, { cause: thrown });
        }
        if (signal.aborted) throw signal.reason;
        throw thrown;
      }
    },
  };
}

const literal = (address: string): ResolvedAddress => ({ address, family: isIP(address) });

function noAddress(host: string) {
  return (cause?: unknown): never => {
    throw new OutboundError('unreachable', `${host} has no address`, { cause });
  };
}

/** Returns a lookup that answers with these addresses for any name. */
function fixedLookup(addresses: readonly ResolvedAddress[]): LookupFunction {
  return (_host, { all, family }, done) => {
    const matching = addresses.filter(
      (one) => typeof family !== 'number' || family === 0 || one.family === family,
    );
    const [first] = matching;
    if (first === undefined) done(Object.assign(new Error('no such address'), { code: 'ENOTFOUND' }), '', 0);
    else if (all === true) done(null, [...matching]);
    else done(null, first.address, first.family);
  };
}

/** Waits for work or for the abort of the signal: `node:dns` cannot be aborted and may take longer. */
async function unlessAborted<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  signal.throwIfAborted();
  const aborted = Promise.withResolvers<never>();
  const onAbort = () => aborted.reject(signal.reason);
  signal.addEventListener('abort', onAbort);
  try {
    return await Promise.race([work, aborted.promise]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

const hostOf = (request: Request) => new URL(request.url).host;

/** Makes the request. Errors never quote the address, as those of `fetch` do: it may contain a password. */
function requestOf(input: string | URL | Request, init: RequestInit): Request {
  const url = URL.parse(input instanceof Request ? input.url : String(input));
  if (url === null) throw new TypeError('it is no address');
  if (hasUserInfo(url.href)) {
    throw new OutboundError('refused', `${url.host} is not called with a user or password in the address`);
  }
  return new Request(input, init);
}

/**
 * Returns where a response redirects to, if the redirect is to be followed.
 * @throws OutboundError when it must not be.
 */
function redirectTarget(request: Request, response: Response): URL | undefined {
  const location = response.headers.get('location');
  if (![301, 302, 303, 307, 308].includes(response.status) || location === null) return undefined;
  if (request.redirect === 'manual') return undefined;
  if (request.redirect === 'error') throw new OutboundError('redirects', `${hostOf(request)} redirects`);
  const target = URL.parse(location, request.url);
  if (target === null || hasUserInfo(target.href)) {
    throw new OutboundError('redirects', `${hostOf(request)} redirects to no address`);
  }
  return target;
}

/** Returns the request that follows a redirect (Fetch standard, "HTTP-redirect fetch"). */
function redirectedRequest(request: Request, status: number, target: URL): Request {
  const headers = new Headers(request.headers);
  const becomesGet =
    (status === 303 && request.method !== 'HEAD') || (status < 303 && request.method === 'POST');
  if (becomesGet)
    for (const name of ['content-type', 'content-encoding', 'content-language']) headers.delete(name);
  if (target.origin !== new URL(request.url).origin) {
    for (const name of ['authorization', 'cookie', 'proxy-authorization', 'host']) headers.delete(name);
  }
  return new Request(target, {
    method: becomesGet ? 'GET' : request.method,
    headers,
    redirect: request.redirect,
    signal: request.signal,
  });
}

/**
 * Adds a trace span to each request when tracing is on. The span names the host only: paths and queries may hold
 * secrets.
 */
export function tracedOutbound(outbound: Outbound, tracing: Tracing | undefined): Outbound {
  if (tracing === undefined) return outbound;
  return {
    ...outbound,
    fetch: (input, init) => {
      const host = URL.parse(input instanceof Request ? input.url : String(input))?.host ?? 'none';
      return tracing.span('outbound', { 'server.address': host }, () => outbound.fetch(input, init));
    },
  };
}

// Decides which addresses the server may send requests to when someone else names them: the public Internet, and what
// the operator opens with OUTBOUND_ALLOW. All others may belong to the operator's own network, which others must not
// reach through this server (SSRF).
// docs/understand/decisions/requests.md#addresses-that-the-operator-has-opened-can-also-be-called-over-plain-http

/** The addresses that may be called. */
interface OutboundRules {
  /** Reports whether the operator opened the address: it may be any address, and plain http is allowed. */
  isOpened(host: string, address: string): boolean;
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
