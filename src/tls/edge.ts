// mTLS by an edge network (spec "Authentication"): the edge did the handshake with the client and says in headers what came
// of it. They are read here, at the door, and taken off every request: nothing behind it can believe them by mistake.
import type { IncomingMessage } from 'node:http';
import type { Middleware } from 'koa';
import { AuthError, oauthShape } from '../http/errors.ts';
import { apiKeyHash, type CustomDomain } from '../records/custom-domains.ts';
import { isSameSecret } from '../runtime/secrets.ts';
import type { ClientCertificates } from './client-certificates.ts';

const KEY = 'cname-api-key';
const CERTIFICATE = 'client-certificate';
const STATUS = 'client-certificate-ca-verified';
const NAMES = new Set([KEY, CERTIFICATE, STATUS]);

interface EdgeDependencies {
  /** Those in force. */
  customDomains(): Promise<readonly CustomDomain[]>;
  certificates: Pick<ClientCertificates, 'believe'>;
  /** Whether a request came straight from a proxy that is trusted; every address is where there is no proxy. */
  isTrusted(address: string): boolean;
}

/**
 * Takes the edge's headers off the request, and believes them where the request brings the API key of a custom domain,
 * from a trusted address. An edge that lets through what its client wrote is refused: then nobody can say whose words
 * they are.
 */
export function edgeHeaders({ customDomains, certificates, isTrusted }: EdgeDependencies): Middleware {
  return async (ctx, next) => {
    const sent = takeHeaders(ctx.req);
    if (sent === undefined) return next();
    const [key = ''] = sent.values.get(KEY) ?? [];
    const peer = ctx.req.socket.remoteAddress ?? '';
    const isEdge = key !== '' && isTrusted(peer) && isKeyOf(await customDomains(), key, hostOf(ctx.req));
    if (!isEdge) return next();
    if (sent.isAmbiguous) {
      return oauthShape(
        ctx,
        new AuthError(
          400,
          'invalid_request',
          'The headers of the edge must be sent once, as they are named.',
        ),
      );
    }
    certificates.believe(ctx.req, {
      certificate: sent.values.get(CERTIFICATE)?.[0],
      status: sent.values.get(STATUS)?.[0],
    });
    return next();
  };
}

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
    const name = (rawHeaders[at] ?? '').toLowerCase();
    const meant = name.replaceAll(/[^a-z0-9]+/g, '-');
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

/** Compares with every key, so that the time says nothing of which was nearly right. */
function isKeyOf(domains: readonly CustomDomain[], key: string, host: string): boolean {
  const hash = apiKeyHash(key);
  // A request that names a custom domain comes from that one's edge; an edge may also ask by the server's own name.
  const named = domains.filter(({ domain }) => domain === host);
  const hashes = (named.length > 0 ? named : domains).flatMap(({ keyHashes }) => keyHashes);
  return hashes.filter((one) => isSameSecret(one, hash)).length > 0;
}

/** The host that a request names, without the port. */
function hostOf({ headers: { host = '' } }: IncomingMessage): string {
  return host.toLowerCase().replace(/:\d*$/, '').replace(/\.$/, '');
}
