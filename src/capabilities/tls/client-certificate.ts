// Reads client certificates (RFC 8705 §2) from the header of a TLS edge.
import { X509Certificate } from 'node:crypto';
import { pemBlocks } from '../../runtime/pem-blocks.ts';

/** The extended key usages that a client certificate may have (RFC 5280 §4.2.1.12): clientAuth, or any. */
const CLIENT_USAGES = ['1.3.6.1.5.5.7.3.2', '2.5.29.37.0'];

/** Why a certificate is refused, in words that the client may read. */
export interface CertificateFault {
  fault: string;
}

/** Longest header, characters. Node.js accepts 16 KiB of headers in all. */
const MAX_HEADER_LENGTH = 16_384;

const MALFORMED = { fault: 'The client certificate cannot be read' } as const;
const SEVERAL = { fault: 'One client certificate must be sent, without its chain' } as const;

/**
 * Reads the certificate of a header: PEM, with spaces or tabs as line ends, plain or URL-encoded; an RFC 9440 byte
 * sequence (`:base64:`); or the `Cert` of one element of Envoy's `x-forwarded-client-cert`.
 * @returns undefined where the header is empty.
 */
export function readCertificate(header: string): X509Certificate | CertificateFault | undefined {
  const value = header.trim();
  if (value === '') return undefined;
  if (value.length > MAX_HEADER_LENGTH) return MALFORMED;
  if (value.startsWith(':')) return readByteSequence(value);
  if (/^[A-Za-z]+=/.test(value)) return readForwarded(value);
  return readPem(value);
}

/** RFC 9440 §2.1, RFC 8941 §3.3.5. */
function readByteSequence(value: string): X509Certificate | CertificateFault {
  if (/:\s*,\s*:/.test(value)) return SEVERAL;
  const base64 = /^:([A-Za-z0-9+/]+={0,2}):$/.exec(value)?.[1];
  return base64 === undefined ? MALFORMED : parse(Buffer.from(base64, 'base64'));
}

function readForwarded(value: string): X509Certificate | CertificateFault {
  const parts = forwardedParts(value);
  if (parts === 'several') return SEVERAL;
  const certificates = parts.filter(([name]) => name.toLowerCase() === 'cert');
  const [first] = certificates;
  if (first === undefined) return MALFORMED;
  return certificates.length > 1 ? SEVERAL : readPem(first[1]);
}

/** Returns the `Key=value` pairs of one element. A quoted value may contain any character. */
function forwardedParts(value: string): [string, string][] | 'several' {
  const parts: [string, string][] = [];
  const pair = /([A-Za-z]+)=("(?:[^"\\]|\\.)*"|[^,;"]*)([,;]|$)/gy;
  for (let found = pair.exec(value); found !== null && found[0] !== ''; found = pair.exec(value)) {
    const [, name = '', text = '', end] = found;
    if (end === ',') return 'several';
    parts.push([name, text.startsWith('"') ? text.slice(1, -1).replaceAll(/\\(.)/g, '$1') : text]);
    if (end === '') return parts;
  }
  return [];
}

function readPem(value: string): X509Certificate | CertificateFault {
  let text = value;
  if (value.includes('%')) {
    try {
      text = decodeURIComponent(value);
    } catch {
      return MALFORMED;
    }
  }
  const blocks = pemBlocks(text);
  const [first] = blocks;
  const isPlain = ({ label, content }: (typeof blocks)[number]) =>
    label === 'CERTIFICATE' && /^[A-Za-z0-9+/=\s]+$/.test(content);
  const rest = blocks.reduce((left, block) => left.replace(block.text, ''), text);
  if (first === undefined || !blocks.every(isPlain) || rest.trim() !== '') return MALFORMED;
  return blocks.length > 1 ? SEVERAL : parse(Buffer.from(first.content, 'base64'));
}

function parse(der: Buffer): X509Certificate | CertificateFault {
  try {
    const certificate = new X509Certificate(der);
    // Bytes after the certificate would not be covered by its thumbprint.
    return certificate.raw.length === der.length ? certificate : MALFORMED;
  } catch {
    return MALFORMED;
  }
}

/**
 * Returns why a client may not authenticate with a certificate now (RFC 5280 §4.1.2.5, §4.2.1.12).
 * @param now epoch milliseconds.
 * @returns undefined where it may.
 */
export function certificateFault(
  { validFrom, validTo, keyUsage }: Pick<X509Certificate, 'validFrom' | 'validTo' | 'keyUsage'>,
  now: number,
): string | undefined {
  // Negated, so that an unreadable date counts as past.
  if (!(Date.parse(validTo) > now)) return 'The client certificate has expired';
  if (!(Date.parse(validFrom) <= now)) return 'The client certificate is not valid yet';
  // Node.js names the extended key usages `keyUsage`.
  if (keyUsage !== undefined && !keyUsage.some((usage) => CLIENT_USAGES.includes(usage))) {
    return 'The client certificate is not for client authentication';
  }
  return undefined;
}
