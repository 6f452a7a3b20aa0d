// How a client's certificate is recognized (RFC 8705 §2): by the certificate itself, or by the name in its subject.
import { X509Certificate } from 'node:crypto';
import { z } from 'zod';
import { sha256 } from '../../runtime/secrets.ts';
import { isNameOnly } from './client-keys.ts';
import { formatName, parseName, subjectOf } from './distinguished-name.ts';

/** The members of every credential; unknown members are kept. */
export const credentialMembers = {
  /** `cred_…`; a credential in the tenant file may have none. */
  id: z.string().optional(),
  name: z.string().optional(),
  /** When it expires, ISO 8601. */
  expires_at: z.iso.datetime({ offset: true }).optional(),
  created_at: z.string().optional(),
  updated_at: z.string().optional(),
};

const pem = z.string().max(16_384);

/** A certificate of `self_signed_tls_client_auth`, as PEM or as its SHA-256 thumbprint in base64url or hexadecimal. */
export const certificateCredential = z
  .looseObject({
    ...credentialMembers,
    credential_type: z.literal('x509_cert').default('x509_cert'),
    pem: pem.optional(),
    thumbprint_sha256: z.string().optional(),
  })
  .transform((credential, context) => {
    // No certificate has this thumbprint.
    if (isNameOnly(credential)) return { ...credential, thumbprint_sha256: '' };
    const { pem: text, thumbprint_sha256: named } = credential;
    const certificate = text === undefined ? undefined : certificateOf(text);
    const own = certificate === undefined ? undefined : sha256(certificate.raw);
    const thumbprint = named === undefined ? own : thumbprintOf(named);
    const fault = (path: string, message: string) => {
      context.addIssue({ code: 'custom', path: [path], message });
      return z.NEVER;
    };
    if (text !== undefined && certificate === undefined) return fault('pem', 'is no X.509 certificate');
    if (certificate !== undefined && !isStrong(certificate))
      return fault('pem', 'has a weak key: RSA needs 2048 bits, an elliptic curve is P-256, P-384 or P-521');
    if (thumbprint === undefined)
      return fault('thumbprint_sha256', 'must be a SHA-256 thumbprint, in base64url or hexadecimal digits');
    if (own !== undefined && own !== thumbprint)
      return fault('thumbprint_sha256', 'is not that of the certificate');
    return { ...credential, thumbprint_sha256: thumbprint };
  });

/** The subject of a certificate of `tls_client_auth`, in the form of RFC 4514 or taken from a certificate. */
export const subjectCredential = z
  .looseObject({
    ...credentialMembers,
    credential_type: z.literal('cert_subject_dn').default('cert_subject_dn'),
    subject_dn: z.string().max(1024).optional(),
    pem: pem.optional(),
  })
  .transform((credential, context) => {
    const { subject_dn: named, pem: text, ...rest } = credential;
    // No certificate has this subject.
    if (isNameOnly(credential)) return { ...rest, subject_dn: '' };
    const subject = named ?? (text === undefined ? undefined : subjectIn(text));
    if (subject === undefined || parseName(subject) === undefined) {
      context.addIssue({
        code: 'custom',
        path: [named === undefined && text !== undefined ? 'pem' : 'subject_dn'],
        message: 'has no distinguished name as RFC 4514 writes it',
      });
      return z.NEVER;
    }
    return { ...rest, subject_dn: subject };
  });

/**
 * Returns the certificate of a PEM; undefined if it is not one. Deploy tools write line ends as the two characters
 * `\n`.
 */
function certificateOf(text: string): X509Certificate | undefined {
  try {
    return new X509Certificate(text.replaceAll('\\n', '\n'));
  } catch {
    return undefined;
  }
}

function subjectIn(text: string): string | undefined {
  const certificate = certificateOf(text);
  return certificate === undefined ? undefined : formatName(subjectOf(certificate.raw));
}

/** By OpenSSL's names: the algorithms of TLS 1.3 (RFC 8446 §4.2.7). */
const CURVES = new Set(['prime256v1', 'secp384r1', 'secp521r1']);

function isStrong({
  publicKey: { asymmetricKeyType: type, asymmetricKeyDetails: details },
}: X509Certificate) {
  if (type === 'rsa' || type === 'rsa-pss') return (details?.modulusLength ?? 0) >= 2048;
  return type !== 'ec' || CURVES.has(details?.namedCurve ?? '');
}

/** Returns a thumbprint in base64url; undefined for any other text. */
function thumbprintOf(text: string): string | undefined {
  const hex = text.replaceAll(':', '');
  if (/^[0-9a-f]{64}$/i.test(hex)) return Buffer.from(hex, 'hex').toString('base64url');
  return /^[\w-]{43}=?$/.test(text) ? text.slice(0, 43) : undefined;
}
