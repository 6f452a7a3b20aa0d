// Decrypts an assertion (XML Encryption 1.1): AES-GCM, and AES-CBC, which older providers send. Keys must be
// wrapped by RSA-OAEP: PKCS #1 v1.5 is open to Bleichenbacher's chosen-ciphertext attack.
import { constants, createDecipheriv, type KeyObject, privateDecrypt } from 'node:crypto';
import { NS } from './names.ts';
import { attribute, badMessage, childOf, textOf, type XmlElement } from './xml.ts';

const XENC11 = 'http://www.w3.org/2009/xmlenc11#';

interface BlockCipher {
  name: 'aes-128-gcm' | 'aes-192-gcm' | 'aes-256-gcm' | 'aes-128-cbc' | 'aes-192-cbc' | 'aes-256-cbc';
  keyBytes: number;
}

const CIPHERS: Readonly<Record<string, BlockCipher>> = {
  [`${XENC11}aes128-gcm`]: { name: 'aes-128-gcm', keyBytes: 16 },
  [`${XENC11}aes192-gcm`]: { name: 'aes-192-gcm', keyBytes: 24 },
  [`${XENC11}aes256-gcm`]: { name: 'aes-256-gcm', keyBytes: 32 },
  [`${NS.encryption}aes128-cbc`]: { name: 'aes-128-cbc', keyBytes: 16 },
  [`${NS.encryption}aes192-cbc`]: { name: 'aes-192-cbc', keyBytes: 24 },
  [`${NS.encryption}aes256-cbc`]: { name: 'aes-256-cbc', keyBytes: 32 },
};

/** The algorithms for the content of an assertion, the preferred ones first. */
export const CONTENT_ALGORITHMS: readonly string[] = Object.keys(CIPHERS);

export const KEY_ALGORITHMS: readonly string[] = [`${NS.encryption}rsa-oaep-mgf1p`, `${XENC11}rsa-oaep`];

const DIGESTS: Readonly<Record<string, string>> = {
  [`${NS.signature}sha1`]: 'sha1',
  [`${NS.encryption}sha256`]: 'sha256',
  [`${NS.encryption}sha512`]: 'sha512',
};

/** Returns the same error for every failure, so that an attacker who tries ciphertexts learns nothing. */
export function unreadable(cause?: unknown) {
  return badMessage('The encrypted assertion cannot be read.', cause);
}

/**
 * @param keys our private keys; each is tried.
 * @param accepts returns whether the connection accepts the content's algorithm, a URI.
 * @throws AuthError 400, the same for every failure.
 */
export function decryptAssertion(
  encrypted: XmlElement,
  keys: readonly KeyObject[],
  accepts: (algorithm: string) => boolean,
): string {
  try {
    const data = requiredChild(encrypted, NS.encryption, 'EncryptedData');
    const algorithm = algorithmOf(data);
    const cipher = CIPHERS[algorithm];
    if (cipher === undefined || !accepts(algorithm))
      throw new Error('the encryption algorithm is not accepted');
    const value = cipherValue(data);
    let cause: unknown;
    for (const key of keys) {
      try {
        return decrypt(cipher, unwrap(encryptedKey(encrypted, data), key), value).toString('utf8');
      } catch (thrown) {
        cause = thrown;
      }
    }
    throw new Error('no key of ours decrypts it', { cause });
  } catch (thrown) {
    throw unreadable(thrown);
  }
}

/** Returns whether an algorithm detects content that was modified; a mode without authentication does not. */
export function isAuthenticated(algorithm: string): boolean {
  return algorithm.endsWith('-gcm');
}

/** Returns the EncryptedKey in the data's KeyInfo, or beside the data (SAML Core §2.2.4). */
function encryptedKey(encrypted: XmlElement, data: XmlElement): XmlElement {
  const info = requiredChild(data, NS.signature, 'KeyInfo');
  return (
    childOf(info, NS.encryption, 'EncryptedKey') ?? requiredChild(encrypted, NS.encryption, 'EncryptedKey')
  );
}

function unwrap(wrapped: XmlElement, key: KeyObject): Buffer {
  const method = requiredChild(wrapped, NS.encryption, 'EncryptionMethod');
  const digest = childOf(method, NS.signature, 'DigestMethod');
  const oaepHash = digest === undefined ? 'sha1' : DIGESTS[attribute(digest, 'Algorithm') ?? ''];
  // Both functions of OAEP use one hash. No provider is known that uses two.
  const isOaep = KEY_ALGORITHMS.includes(algorithmOf(wrapped));
  if (!isOaep || oaepHash === undefined) throw new Error('the key encryption algorithm is not accepted');
  return privateDecrypt({ key, padding: constants.RSA_PKCS1_OAEP_PADDING, oaepHash }, cipherValue(wrapped));
}

function decrypt({ name, keyBytes }: BlockCipher, key: Buffer, value: Buffer): Buffer {
  if (key.length !== keyBytes) throw new Error('the key has another length');
  if (name === 'aes-128-gcm' || name === 'aes-192-gcm' || name === 'aes-256-gcm') {
    // IV, ciphertext, tag (XML Encryption 1.1 §5.2.4).
    const decipher = createDecipheriv(name, key, value.subarray(0, 12), { authTagLength: 16 });
    decipher.setAuthTag(value.subarray(-16));
    return Buffer.concat([decipher.update(value.subarray(12, -16)), decipher.final()]);
  }
  const decipher = createDecipheriv(name, key, value.subarray(0, 16)).setAutoPadding(false);
  const padded = Buffer.concat([decipher.update(value.subarray(16)), decipher.final()]);
  // Only the last byte states the length of the padding (XML Encryption 1.1 §5.2).
  const padding = padded.at(-1) ?? 0;
  if (padding < 1 || padding > 16) throw new Error('the padding is wrong');
  return padded.subarray(0, -padding);
}

function algorithmOf(encrypted: XmlElement): string {
  return attribute(requiredChild(encrypted, NS.encryption, 'EncryptionMethod'), 'Algorithm') ?? '';
}

function cipherValue(encrypted: XmlElement): Buffer {
  const data = requiredChild(encrypted, NS.encryption, 'CipherData');
  return Buffer.from(
    textOf(requiredChild(data, NS.encryption, 'CipherValue')).replaceAll(/\s/g, ''),
    'base64',
  );
}

function requiredChild(element: XmlElement, namespace: string, name: string): XmlElement {
  const found = childOf(element, namespace, name);
  if (found === undefined) throw new Error(`there is no ${name}`);
  return found;
}
