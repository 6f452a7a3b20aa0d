// The client certificate of each request: what a trusted edge forwarded, or what the client showed this server.
import type { X509Certificate } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { TLSSocket } from 'node:tls';
import type { Clock } from '../runtime/clock.ts';
import { keepLatest } from '../runtime/latest.ts';
import { type CertificateFault, certificateFault, readCertificate } from './client-certificate.ts';

/** A certificate whose key the client has, which is in force. */
interface ClientCertificate {
  certificate: X509Certificate;
  /** Whether it was signed by an authority that is trusted for clients. */
  isCaVerified: boolean;
}

/** What an edge says of its client, whom it asked for a certificate. */
interface Forwarded {
  /** The certificate; undefined where the client had none. */
  certificate: string | undefined;
  /** `SUCCESS` where it was signed by a trusted authority, `FAILED:…` where not, `NONE` where there was none. */
  status: string | undefined;
}

export interface ClientCertificates {
  /** What the client of a request proved, or why its certificate is not good; undefined where it showed none. */
  of(request: IncomingMessage): ClientCertificate | CertificateFault | undefined;
  /** Takes the word of an edge that has proved itself. */
  believe(request: IncomingMessage, forwarded: Forwarded): void;
}

/** Certificates that are kept read: clients show theirs at each request. Each is as long as a header at most. */
const KEPT = 200;

/** Those of one server. @param clock the wall clock. */
export function clientCertificates(clock: Clock): ClientCertificates {
  const readOnce = keptReader(KEPT);
  const forwarded = new WeakMap<IncomingMessage, Forwarded>();
  const read = new WeakMap<IncomingMessage, ClientCertificate | CertificateFault>();
  return {
    believe: (request, said) => void forwarded.set(request, said),
    of: (request) => {
      const before = read.get(request);
      if (before !== undefined) return before;
      const said = forwarded.get(request);
      // An edge's own certificate is not its client's.
      const shown = said === undefined ? direct(request) : readForwarded(said, readOnce);
      const judged = shown === undefined || 'fault' in shown ? shown : inForce(shown, clock());
      if (judged !== undefined) read.set(request, judged);
      return judged;
    },
  };
}

function inForce(shown: ClientCertificate, now: number): ClientCertificate | CertificateFault {
  const fault = certificateFault(shown.certificate, now);
  return fault === undefined ? shown : { fault };
}

/** Reads certificates as {@link readCertificate}, and keeps the last so many. Whether one is in force is asked each time. */
function keptReader(most: number): typeof readCertificate {
  const kept = new Map<string, X509Certificate>();
  return (header) => {
    const certificate = kept.get(header) ?? readCertificate(header);
    if (certificate === undefined || 'fault' in certificate) return certificate;
    // Each time: who shows theirs often is not pushed out by who comes once.
    keepLatest(kept, most, header, certificate);
    return certificate;
  };
}

function readForwarded(
  { certificate: text = '', status = '' }: Forwarded,
  read: typeof readCertificate,
): ClientCertificate | CertificateFault | undefined {
  const certificate = read(text);
  if (certificate === undefined || 'fault' in certificate) return certificate;
  // An edge that saw no certificate has forwarded what its client made up.
  if (status.trim().toUpperCase() === 'NONE') return { fault: 'No client certificate was shown to the edge' };
  return { certificate, isCaVerified: status.trim() === 'SUCCESS' };
}

function direct({ socket }: IncomingMessage): ClientCertificate | undefined {
  const certificate = socket instanceof TLSSocket ? socket.getPeerX509Certificate() : undefined;
  return certificate === undefined
    ? undefined
    : { certificate, isCaVerified: (socket as TLSSocket).authorized };
}
