// mTLS by an edge network (docs/mtls.md): the edge did the handshake with the client and says in headers what came
// of it. They are read here, at the door, and taken off every request: nothing behind it can believe them by mistake.
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
  /** Those in force. */
  customDomains(): Promise<readonly CustomDomain[]>;
  certificates: Pick<ClientCertificates, 'believe'>;
  /** Whether a request came straight from a proxy that is trusted; every address is where there is no proxy. */
  isTrusted(address: string): boolean;
  /** Whether there is a proxy between an edge and here. */
  isProxied: boolean;
}

/** What reads the headers of an edge, and what its word of the client's address is then put in force by. */
interface Edge {
  /** @see edgeOf */
  headers: Middleware;
  /** After all that finds the address of a client: the edge knows better, being one hop more. */
  address: Middleware;
}

/**
 * Takes the edge's headers off the request, and believes them where the request brings the API key of a custom domain,
 * from a trusted address. An edge that lets through what its client wrote is refused: then nobody can say whose words
 * they are.
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

/** The values of a header, and of all that servers take for it: each is the edge's word, or one that its client wrote. */
function valuesOf({ rawHeaders }: IncomingMessage, name: string): string[] {
  return rawHeaders.filter((_, at) => at % 2 === 1 && meantBy(rawHeaders[at - 1] ?? '') === meantBy(name));
}

/** To which each hop adds whom it was asked by. */
const HOPS = 'x-forwarded-for';

/**
 * The address that an edge says.
 * @returns undefined for what is none, and for a list of hops where proxies of ours have added to it: which of them is the
 *   edge's word is theirs to say.
 */
function addressIn(name: string, values: readonly string[], isProxied: boolean): string | undefined {
  if (name === HOPS && isProxied) return undefined;
  const said = name === HOPS ? values.join(',').split(',').at(-1) : values[0];
  const address = said?.trim() ?? '';
  return isIP(address) === 0 ? undefined : address;
}

/** A header's name as servers read it that tell no dash from an underscore. */
const meantBy = (name: string) => name.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-');

interface Sent {
  values: Map<string, string[]>;
  /** A header came twice, or by a name that servers take for it (`client_certificate`). */
  isAmbiguous: boolean;
}

/** Removes the headers, and all that are spelled alike, from every form in which Node gives a request's headers. */
function takeHeaders(request: IncomingMessage): Sent | undefined {
  const { rawHeaders } = request;
  const values = new Map<string, string[]>();
  let isAmbiguous = false;
  for (let at = rawHeaders.length - 2; at >= 0; at -= 2) {
    const sent = rawHeaders[at] ?? '';
    // What is meant by a name is no longer than the name, and begins alike.
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

/** Those whose edge has the key. Compares with every key, so that the time says nothing of which was nearly right. */
function domainsOf(domains: readonly CustomDomain[], key: string, host: string): CustomDomain[] {
  const hash = apiKeyHash(key);
  // A request that names a custom domain comes from that one's edge; an edge may also ask by the server's own name.
  const named = domains.filter(({ domain }) => domain === host);
  const isOf = ({ keyHashes }: CustomDomain) => keyHashes.filter((one) => isSameSecret(one, hash)).length > 0;
  return (named.length > 0 ? named : domains).filter(isOf);
}

/** The host that a request names, without the port. */
function hostOf({ headers: { host = '' } }: IncomingMessage): string {
  return host.toLowerCase().replace(/:\d*$/, '').replace(/\.$/, '');
}
