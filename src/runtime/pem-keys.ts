// Reads keys in PEM. Nothing can interrupt Node.js while it reads a key, and some keys make it compute: the rounds of an
// encryption, or the public part of a DSA key. So the cost is known before: how large the key is, and how many rounds it asks
// for.
import { createPrivateKey, createPublicKey, type KeyObject, X509Certificate } from 'node:crypto';
import { assertEncryptionRounds } from './key-encryption.ts';

/**
 * The largest private key, bytes of DER: RSA of 4,096 bits, encrypted. The cost of a computation grows with the third
 * power of this.
 */
const MAX_PRIVATE_KEY_BYTES = 2_700;
/** @throws Error for a private key that is larger than it may be. */
export function assertPrivateKeySize(der: Buffer): void {
  if (der.length > MAX_PRIVATE_KEY_BYTES)
    throw new Error(`a private key has at most ${MAX_PRIVATE_KEY_BYTES} bytes`);
}

/**
 * Reads the first key or certificate of a PEM text (RFC 7468). Node.js gets no text but what is decided on here: it would
 * take an encrypted key under other labels, too.
 */
export function pemKey(pem: string, passphrase?: string | undefined): KeyObject {
  const { label, body } = blockOf(pem);
  const der = Buffer.from(body, 'base64');
  switch (label) {
    case 'PUBLIC KEY':
      return createPublicKey({ key: der, format: 'der', type: 'spki' });
    case 'RSA PUBLIC KEY':
      return createPublicKey({ key: der, format: 'der', type: 'pkcs1' });
    case 'CERTIFICATE':
      return new X509Certificate(der).publicKey;
    case 'PRIVATE KEY':
    case 'ENCRYPTED PRIVATE KEY':
      assertPrivateKeySize(der);
      assertEncryptionRounds(der);
      return createPrivateKey({ key: der, format: 'der', type: 'pkcs8', ...withPassphrase(passphrase) });
    case 'RSA PRIVATE KEY':
    case 'EC PRIVATE KEY':
      assertPrivateKeySize(der);
      // RFC 1421 §4.6.1.3: encrypted with a key that takes one round.
      if (body.includes('DEK-Info:')) {
        const key = `-----BEGIN ${label}-----${body}-----END ${label}-----`;
        return createPrivateKey({ key, ...withPassphrase(passphrase) });
      }
      return createPrivateKey({ key: der, format: 'der', type: label.startsWith('RSA') ? 'pkcs1' : 'sec1' });
    default:
      throw new Error(`a key in PEM cannot be a ${label}`);
  }
}

/** Reads the first public key or certificate of a PEM text. @throws Error when it is a private key, or none. */
export function publicPemKey(pem: string): KeyObject {
  const key = pemKey(pem);
  if (key.type !== 'public') throw new Error('the key is not a public key');
  return key;
}

const withPassphrase = (passphrase: string | undefined) => (passphrase === undefined ? {} : { passphrase });

const [BEGIN, END, DASHES] = ['-----BEGIN ', '-----END ', '-----'];

/** Returns the first block of a PEM text. @throws Error when there is none. */
function blockOf(pem: string): { label: string; body: string } {
  for (let at = pem.indexOf(BEGIN); at >= 0; at = pem.indexOf(BEGIN, at + 1)) {
    const labelEnd = pem.indexOf(DASHES, at + BEGIN.length);
    const end = pem.indexOf(END, labelEnd);
    if (labelEnd < 0 || end < 0) break;
    const label = pem.slice(at + BEGIN.length, labelEnd);
    // Tools write the curve before the key.
    if (label !== 'EC PARAMETERS') return { label, body: pem.slice(labelEnd + DASHES.length, end) };
  }
  throw new Error('the key is not in PEM');
}
