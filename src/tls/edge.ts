// mTLS at an edge network (docs/mtls.md): the edge did the handshake with the client and reports the result in headers.
// They are read here and removed from every request, so that no later code can trust them by mistake.
import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import type { Context, Middleware, Next } from 'koa';
import { AuthError, oauthShape } from '../http/errors.ts';
import { apiKeyHash, type CustomDomain } from '../records/custom-domains.ts';
import { isSameSecret } from '../runtime/secrets.ts';
import type { ClientCertificates } from './client-certificates.ts';

const KEY = 'cname-api-key';
const CERTIFICATE = 'client-certificate';
const STATUS = 'client-certificate-ca-verified';
const NAMES = new Set([KEY, CERTIFICATE, STATUS]);
const SHORTEST = Math.min(...[...NAMES].map(({ length }) => length));
const INITIALS = new Set([...NAMES].map((name) => name.charAt(0)));

interface EdgeDependencies {
  /** Returns the verified custom domains. */
  customDomains(): Promise<readonly CustomDomain[]>;
  certificates: Pick<ClientCertificates, 'believe'>;
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

/**
 * Removes the edge's headers from every request, and trusts them where the request has the API key of a custom domain
 * and comes from a trusted address. A request in which a header occurs twice is refused: the edge has passed on a
 * header of its client, and the two cannot be told apart.
 */
export function edgeOf({ customDomains, certificates, isTrusted, isProxied }: EdgeDependencies): Edge {
  const addresses = new WeakMap<IncomingMessage, string>();
  const judged = async (ctx: Context, next: Next, sent: Sent) => {
    const [key = ''] = sent.values.get(KEY) ?? [];
    const peer = ctx.req.socket.remoteAddress ?? '';
    const isAsked = key !== '' && isTrusted(peer);
    const edges = isAsked ? domainsOf(await customDomains(), key, hostOf(ctx.req)) : [];
    if (edges.length === 0) return next();
    if (sent.isAmbiguous) return refuseAmbiguous(ctx);
    const named = edges.find(({ clientIpHeader }) => clientIpHeader !== undefined)?.clientIpHeader;
    if (named !== undefined) {
      const values = valuesOf(ctx.req, named);
      if (values.length > 1 && named !== HOPS) return refuseAmbiguous(ctx);
      const address = addressIn(named, values, isProxied);
      if (address !== undefined) addresses.set(ctx.req, address);
    }
    certificates.believe(ctx.req, {
      certificate: sent.values.get(CERTIFICATE)?.[0],
      status: sent.values.get(STATUS)?.[0],
    });
    return next();
  };
  return {
    headers: (ctx, next) => {
      const sent = takeHeaders(ctx.req);
      return sent === undefined ? next() : judged(ctx, next, sent);
    },
    address: (ctx, next) => {
      const said = addresses.get(ctx.req);
      if (said !== undefined) ctx.request.ip = said;
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
  return rawHeaders.filter((_, at) => at % 2 === 1 && meantBy(rawHeaders[at - 1] ?? '') === meantBy(name));
}

/** The list of addresses to which each hop adds the one that it was requested by. */
const HOPS = 'x-forwarded-for';

/**
 * Returns the address that an edge reports.
 * @returns undefined for an invalid address, and for a list of hops to which our own proxies have added: the proxy
 * settings decide about that.
 */
function addressIn(name: string, values: readonly string[], isProxied: boolean): string | undefined {
  if (name === HOPS && isProxied) return undefined;
  const said = name === HOPS ? values.join(',').split(',').at(-1) : values[0];
  const address = said?.trim() ?? '';
  return isIP(address) === 0 ? undefined : address;
}

/** Returns a header's name as seen by servers that do not distinguish dashes from underscores. */
const meantBy = (name: string) => name.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-');

interface Sent {
  values: Map<string, string[]>;
  /** Whether a header occurred twice, or under a name that servers take for it (`client_certificate`). */
  isAmbiguous: boolean;
}

/** Removes the edge's headers, under every spelling, from all forms in which Node.js returns a request's headers. */
function takeHeaders(request: IncomingMessage): Sent | undefined {
  const { rawHeaders } = request;
  const values = new Map<string, string[]>();
  let isAmbiguous = false;
  for (let at = rawHeaders.length - 2; at >= 0; at -= 2) {
    const sent = rawHeaders[at] ?? '';
    // A cheap check first: a spelling has the first character of the name and is not shorter than the shortest name.
    if (sent.length < SHORTEST || !INITIALS.has(sent.charAt(0).toLowerCase())) continue;
    const name = sent.toLowerCase();
    const meant = meantBy(name);
    if (!NAMES.has(meant)) continue;
    const before = values.get(meant) ?? [];
    isAmbiguous ||= name !== meant || before.length > 0;
    values.set(meant, [rawHeaders[at + 1] ?? '', ...before]);
    delete request.headers[name];
    delete request.headersDistinct[name];
    rawHeaders.splice(at, 2);
  }
  return values.size === 0 ? undefined : { values, isAmbiguous };
}

/**
 * Returns the domains whose edge has the key. All keys are compared, so that the duration does not reveal a near match.
 */
function domainsOf(domains: readonly CustomDomain[], key: string, host: string): CustomDomain[] {
  const hash = apiKeyHash(key);
  // A request for a custom domain comes from the edge of that domain. An edge may also request the server's own name.
  const named = domains.filter(({ domain }) => domain === host);
  const isOf = ({ keyHashes }: CustomDomain) => keyHashes.filter((one) => isSameSecret(one, hash)).length > 0;
  return (named.length > 0 ? named : domains).filter(isOf);
}

/** Returns the host of a request, without the port. */
function hostOf({ headers: { host = '' } }: IncomingMessage): string {
  return host.toLowerCase().replace(/:\d*$/, '').replace(/\.$/, '');
}
