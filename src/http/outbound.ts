// The one HTTP client for every address that a configuration, a script or a stranger names. It connects only to
// addresses that it has resolved and checked itself, so that a name cannot resolve to another address in between (DNS
// rebinding). It ignores proxies of the environment and aborts responses that are too large or too slow.

import { lookup as systemLookup } from 'node:dns/promises';
import http from 'node:http';
import https from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import type { Tracing } from '../runtime/tracing.ts';
import { OutboundError } from './outbound-error.ts';
import { exchange } from './outbound-exchange.ts';
import { hasUserInfo, type OutboundRules } from './outbound-rules.ts';

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
  /**
   * Sends a request as `fetch` does, to https addresses, and to http addresses that the operator opened. Up to five
   * redirects are followed, unless `redirect` says otherwise; credentials are not sent to another origin.
   * @returns a response whose body has been read.
   * @throws OutboundError when it fails; TypeError for an invalid request; the reason of `signal` when that aborts.
   */
  fetch(input: string | URL | Request, init?: OutboundInit): Promise<Response>;
  /**
   * Resolves a host to the addresses that may be connected to.
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

/** Creates the client. */
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
    const { isOpened, lookup: pinned } = await unlessAborted(signal, resolve(url.hostname));
    if (url.protocol === 'http:' && !isOpened) {
      throw new OutboundError('refused', `${url.hostname} is to be called by https`);
    }
    return exchange({
      request,
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
      const { timeout = TIMEOUT, maxBytes: _, headOnly: __, ...rest } = init;
      const timeoutSignal = AbortSignal.timeout(timeout);
      let request = requestOf(input, rest as RequestInit);
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
