// mTLS at an edge network (docs/do/mtls.md): the edge did the handshake with the client and reports the result in
// headers. They are read here and removed from every request, so that no later code can trust them by mistake.

import type { IncomingMessage } from 'node:http';
import type { Context, Middleware, Next } from 'koa';
import { forwardedAddress } from '../../http/addresses.ts';
import { AuthError, oauthShape } from '../../http/errors.ts';
import { requestValue } from '../../http/server/request-target.ts';
import { apiKeyHash, type CustomDomain } from '../../records/tenant/custom-domains.ts';
import { isSameSecret } from '../../runtime/secrets.ts';
import type { ClientCertificates } from './client-certificates.ts';

const KEY = 'cname-api-key';
const CERTIFICATE = 'client-certificate';
const STATUS = 'client-certificate-ca-verified';
const EDGE_HEADERS = new Set([KEY, CERTIFICATE, STATUS]);
const MIN_LENGTH = Math.min(...[...EDGE_HEADERS].map(({ length }) => length));
const INITIALS = new Set([...EDGE_HEADERS].map((name) => name.charAt(0)));

interface EdgeDependencies {
  customDomains(): Promise<readonly CustomDomain[]>;
  certificates: Pick<ClientCertificates, 'setForwarded'>;
  /** Reports whether a request came directly from a trusted proxy; true for every address where there is no proxy. */
  isTrusted(address: string): boolean;
  /** Whether there is a proxy between an edge and this server. */
  isProxied: boolean;
}

/** Reads the headers of an edge, and sets the client's address that the edge reports. */
interface Edge {
  /** @see edgeOf */
  headers: Middleware;
  /** Must run after the middleware that finds the client's address: the edge is one hop closer to the client. */
  address: Middleware;
}

// docs/understand/decisions/clients-keys.md#the-edge-in-front-of-a-custom-domain-is-identified-by-its-api-key
/**
 * Removes the edge's headers from every request, and trusts them where the request has the API key of a custom domain
 * and comes from a trusted address. A request in which a header occurs twice is refused: the edge has passed on a
 * header of its client, and the two cannot be told apart.
 */
export function edgeOf({ customDomains, certificates, isTrusted, isProxied }: EdgeDependencies): Edge {
  const addresses = new WeakMap<IncomingMessage, string>();
  const readReport = async (ctx: Context, next: Next, headers: EdgeHeaders) => {
    const [key = ''] = headers.values.get(KEY) ?? [];
    const peer = ctx.req.socket.remoteAddress ?? '';
    const isTrustedKey = key !== '' && isTrusted(peer);
    const edges = isTrustedKey ? domainsOf(await customDomains(), key, hostOf(ctx.req)) : [];
    if (edges.length === 0) return next();
    if (headers.isAmbiguous) return refuseAmbiguous(ctx);
    const addressHeader = edges.find(({ clientIpHeader }) => clientIpHeader !== undefined)?.clientIpHeader;
    if (addressHeader !== undefined) {
      const values = valuesOf(ctx.req, addressHeader);
      if (values.length > 1 && addressHeader !== FORWARDED_FOR) return refuseAmbiguous(ctx);
      const address = addressIn(addressHeader, values, isProxied);
      if (address !== undefined) addresses.set(ctx.req, address);
    }
    certificates.setForwarded(ctx.req, {
      certificate: headers.values.get(CERTIFICATE)?.[0],
      status: headers.values.get(STATUS)?.[0],
    });
    return next();
  };
  return {
    headers: (ctx, next) => {
      const headers = removeHeaders(ctx.req);
      return headers === undefined ? next() : readReport(ctx, next, headers);
    },
    address: (ctx, next) => {
      const address = addresses.get(ctx.req);
      if (address !== undefined) {
        connectingAddress.set(ctx, ctx.ip);
        ctx.request.ip = address;
      }
      return next();
    },
  };
}

function refuseAmbiguous(ctx: Context): void {
  const description = 'The headers of the edge must be sent once, as they are named.';
  oauthShape(ctx, new AuthError(400, 'invalid_request', description));
}

/**
 * Returns the values of a header under every name that servers take for it. Each was set by the edge or by its client.
 */
function valuesOf({ rawHeaders }: IncomingMessage, name: string): string[] {
  return rawHeaders.filter(
    (_, index) => index % 2 === 1 && canonicalName(rawHeaders[index - 1] ?? '') === canonicalName(name),
  );
}

/** The list of addresses to which each hop adds the one that it was requested by. */
const FORWARDED_FOR = 'x-forwarded-for';

const connectingAddress = requestValue<string>('address that connected');

/** Returns the address that connected to this server or, if the request came through an edge, to the edge. */
export function connectingAddressOf(ctx: Context): string {
  return connectingAddress.of(ctx) ?? ctx.ip;
}

/**
 * Returns the address that an edge reports.
 * @returns undefined for an invalid address, and for a list of hops to which our own proxies have added: the proxy
 * settings decide about that.
 */
function addressIn(name: string, values: readonly string[], isProxied: boolean): string | undefined {
  if (name === FORWARDED_FOR && isProxied) return undefined;
  const text = name === FORWARDED_FOR ? values.join(',').split(',').at(-1) : values[0];
  return forwardedAddress(text ?? '');
}

/** Returns a header's name as seen by servers that do not distinguish dashes from underscores. */
const canonicalName = (name: string) => name.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-');

interface EdgeHeaders {
  values: Map<string, string[]>;
  /** Whether a header occurred twice, or under a name that servers take for it (`client_certificate`). */
  isAmbiguous: boolean;
}

/** Removes the edge's headers, under every spelling, from all forms in which Node.js returns a request's headers. */
function removeHeaders(request: IncomingMessage): EdgeHeaders | undefined {
  const { rawHeaders } = request;
  const values = new Map<string, string[]>();
  let isAmbiguous = false;
  for (let index = rawHeaders.length - 2; index >= 0; index -= 2) {
    const rawName = rawHeaders[index] ?? '';
    // A cheap check first: a spelling has the first character of the name and is not shorter than the shortest name.
    if (rawName.length < MIN_LENGTH || !INITIALS.has(rawName.charAt(0).toLowerCase())) continue;
    const name = rawName.toLowerCase();
    const canonical = canonicalName(name);
    if (!EDGE_HEADERS.has(canonical)) continue;
    const previous = values.get(canonical) ?? [];
    isAmbiguous ||= name !== canonical || previous.length > 0;
    values.set(canonical, [rawHeaders[index + 1] ?? '', ...previous]);
    delete request.headers[name];
    delete request.headersDistinct[name];
    rawHeaders.splice(index, 2);
  }
  return values.size === 0 ? undefined : { values, isAmbiguous };
}

/** All keys are compared, so that the duration does not reveal a near match. */
function domainsOf(domains: readonly CustomDomain[], key: string, host: string): CustomDomain[] {
  const hash = apiKeyHash(key);
  // A request for a custom domain comes from the edge of that domain. An edge may also request the server's own name.
  const ofHost = domains.filter(({ domain }) => domain === host);
  const isOf = ({ keyHashes }: CustomDomain) => keyHashes.filter((one) => isSameSecret(one, hash)).length > 0;
  return (ofHost.length > 0 ? ofHost : domains).filter(isOf);
}

/** Returns the host that a request names, without the port. It is one host, in its normal form (src/http/server/request-target.ts). */
function hostOf({ headers: { host = '' } }: IncomingMessage): string {
  return host.replace(/:\d*$/, '');
}
