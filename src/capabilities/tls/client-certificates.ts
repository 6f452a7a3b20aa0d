// The client certificate of each request: forwarded by a trusted edge, or shown to this server.
import type { X509Certificate } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { TLSSocket } from 'node:tls';
import type { Clock } from '../../runtime/clock.ts';
import { keepLatest } from '../../runtime/latest.ts';
import { type CertificateFault, certificateFault, readCertificate } from './client-certificate.ts';

/** A valid certificate whose private key the client has. */
interface ClientCertificate {
  certificate: X509Certificate;
  /** Whether an authority that is trusted for clients signed it. */
  isCaVerified: boolean;
}

interface ForwardedCertificate {
  /** The certificate; undefined where the client had none. */
  certificate: string | undefined;
  /** `SUCCESS` where a trusted authority signed it, `FAILED:…` where not, `NONE` where there was none. */
  status: string | undefined;
}

export interface ClientCertificates {
  /** Returns the certificate of a request's client, or why it is refused; undefined where it showed none. */
  of(request: IncomingMessage): ClientCertificate | CertificateFault | undefined;
  /** Sets what an authenticated edge reported about a request. */
  setForwarded(request: IncomingMessage, forwarded: ForwardedCertificate): void;
}

/**
 * How many parsed certificates are kept, because clients show theirs at each request. Each is no longer than a header.
 */
const CACHED_CERTIFICATES = 200;

/** @param clock the wall clock. */
export function clientCertificates(clock: Clock): ClientCertificates {
  const readCached = cachedReader(CACHED_CERTIFICATES);
  const forwarded = new WeakMap<IncomingMessage, ForwardedCertificate>();
  const read = new WeakMap<IncomingMessage, ClientCertificate | CertificateFault>();
  return {
    setForwarded: (request, report) => void forwarded.set(request, report),
    of: (request) => {
      const known = read.get(request);
      if (known !== undefined) return known;
      const report = forwarded.get(request);
      // Behind an edge, the certificate of the TLS connection is the edge's, not its client's.
      const presented = report === undefined ? presentedTo(request) : readForwarded(report, readCached);
      const result =
        presented === undefined || 'fault' in presented ? presented : checkValidity(presented, clock());
      if (result !== undefined) read.set(request, result);
      return result;
    },
  };
}

function checkValidity(presented: ClientCertificate, now: number): ClientCertificate | CertificateFault {
  const fault = certificateFault(presented.certificate, now);
  return fault === undefined ? presented : { fault };
}

/** Returns {@link readCertificate} with a cache of the last certificates. Their validity is checked at each request. */
function cachedReader(size: number): typeof readCertificate {
  const cache = new Map<string, X509Certificate>();
  return (header) => {
    const certificate = cache.get(header) ?? readCertificate(header);
    if (certificate === undefined || 'fault' in certificate) return certificate;
    // At each use, so that certificates that are shown often stay in the cache.
    keepLatest(cache, size, header, certificate);
    return certificate;
  };
}

function readForwarded(
  { certificate: text = '', status = '' }: ForwardedCertificate,
  read: typeof readCertificate,
): ClientCertificate | CertificateFault | undefined {
  const certificate = read(text);
  if (certificate === undefined || 'fault' in certificate) return certificate;
  // The edge saw no certificate, so the client has made up the header.
  if (status.trim().toUpperCase() === 'NONE') return { fault: 'No client certificate was shown to the edge' };
  return { certificate, isCaVerified: status.trim() === 'SUCCESS' };
}

function presentedTo({ socket }: IncomingMessage): ClientCertificate | undefined {
  const certificate = socket instanceof TLSSocket ? socket.getPeerX509Certificate() : undefined;
  return certificate === undefined
    ? undefined
    : { certificate, isCaVerified: (socket as TLSSocket).authorized };
}
