// Reads keys in PEM. Nothing can interrupt Node.js while it reads a key, and some keys make it compute: the rounds of an
// encryption, or the public part of a DSA key. So the cost is known before: how large the key is, and how many rounds it asks
// for.
import { createPrivateKey, createPublicKey, type KeyObject, X509Certificate } from 'node:crypto';

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

// How much work it is to decrypt a private key: read from the key itself, before anything is computed.

/** The object identifiers, in hexadecimal: PBES2 and PBKDF2 (RFC 8018 §A.4, §A.2). */
const [PBES2, PBKDF2] = ['2a864886f70d01050d', '2a864886f70d01050c'];
/** PBES1 (RFC 8018 §A.3), and its kind in PKCS #12 (RFC 7292 §C). */
const PBES1 = ['2a864886f70d0105', '2a864886f70d010c01'];

/** Most rounds of a key's encryption: OpenSSL writes 2,048. */
const MAX_KEY_ROUNDS = 1_000_000;

/** The tags of ASN.1 that occur here. */
const [INTEGER, OCTET_STRING, OBJECT_IDENTIFIER, SEQUENCE] = [0x02, 0x04, 0x06, 0x30];

/**
 * Checks a private key in the form of PKCS #8: it is either not encrypted (RFC 5208 §5), or with a password (§6) that so
 * many rounds make a key of.
 * @throws Error when it takes too many, or cannot be told.
 */
function assertEncryptionRounds(der: Uint8Array): void {
  const [key] = elements(der);
  const [first] = elements(contentOf(key, SEQUENCE));
  // The version of a key that is not encrypted.
  if (first?.tag === INTEGER) return;
  const [algorithm, parameters] = elements(contentOf(first, SEQUENCE));
  const rounds = roundsOf(oidOf(algorithm), parameters);
  if (rounds > MAX_KEY_ROUNDS) throw new Error(`a key's encryption takes at most ${MAX_KEY_ROUNDS} rounds`);
}

function roundsOf(oid: string, parameters: Element | undefined): number {
  const members = elements(contentOf(parameters, SEQUENCE));
  if (PBES1.some((prefix) => oid.length === prefix.length + 2 && oid.startsWith(prefix)) && oid !== PBES2)
    return saltedRounds(members);
  const [derivation, derivationParameters] = elements(contentOf(members[0], SEQUENCE));
  // Scrypt, the only other one in use (RFC 7914 §7), is bounded by memory as well.
  if (oid !== PBES2 || oidOf(derivation) !== PBKDF2)
    throw new Error('the encryption of the key is not supported: it is not PBES2 with PBKDF2');
  return saltedRounds(elements(contentOf(derivationParameters, SEQUENCE)));
}

function saltedRounds([salt, rounds]: readonly Element[]): number {
  contentOf(salt, OCTET_STRING);
  return Number(BigInt(`0x${hex(contentOf(rounds, INTEGER)) || '0'}`));
}

const oidOf = (element: Element | undefined): string => hex(contentOf(element, OBJECT_IDENTIFIER));
const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

/** An element of DER (ITU-T X.690 §10). */
interface Element {
  tag: number;
  content: Uint8Array;
}

function contentOf(element: Element | undefined, tag: number): Uint8Array {
  if (element?.tag !== tag) throw new Error('the key is not a private key in DER');
  return element.content;
}

/** Splits the content of a sequence. @throws Error where a length is not definite, or larger than the rest. */
function elements(bytes: Uint8Array): Element[] {
  const found: Element[] = [];
  for (let at = 0; at < bytes.length; ) {
    const [tag = 0, short = 0] = bytes.subarray(at);
    const lengthBytes = short > 0x80 ? short - 0x80 : 0;
    const start = at + 2 + lengthBytes;
    const length = lengthBytes === 0 ? short : Number(`0x${hex(bytes.subarray(at + 2, start)) || '0'}`);
    if (short === 0x80 || lengthBytes > 4 || start + length > bytes.length)
      throw new Error('the key is not in DER');
    found.push({ tag, content: bytes.subarray(start, start + length) });
    at = start + length;
  }
  return found;
}
