// Encrypts an assertion for its service provider (XML Encryption 1.1) with AES-256-GCM; the key is wrapped by RSA-OAEP.
// CBC is not offered: it is open to padding oracle attacks.
import { constants, createCipheriv, type KeyObject, publicEncrypt } from 'node:crypto';
import type { Random } from '../../runtime/secrets.ts';
import { NS } from './names.ts';
import { type Markup, xml } from './xml.ts';

/** Encrypts an assertion. @returns its `EncryptedAssertion`. */
export function encryptAssertion(assertion: string, recipient: KeyObject, random: Random): Markup {
  const [key, iv] = [random(32), random(12)];
  const cipher = createCipheriv('aes-256-gcm', key, iv);
  // The value is IV, ciphertext, tag (XML Encryption 1.1 §5.2.4).
  const ciphertext = Buffer.concat([
    iv,
    cipher.update(assertion, 'utf8'),
    cipher.final(),
    cipher.getAuthTag(),
  ]);
  const padding = constants.RSA_PKCS1_OAEP_PADDING;
  const wrappedKey = publicEncrypt({ key: recipient, padding, oaepHash: 'sha1' }, key);
  return xml(
    'saml:EncryptedAssertion',
    { 'xmlns:saml': NS.assertion },
    xml(
      'xenc:EncryptedData',
      { 'xmlns:xenc': NS.encryption, Type: `${NS.encryption}Element` },
      xml('xenc:EncryptionMethod', { Algorithm: 'http://www.w3.org/2009/xmlenc11#aes256-gcm' }),
      xml('ds:KeyInfo', { 'xmlns:ds': NS.signature }, encryptedKey(wrappedKey)),
      cipherData(ciphertext),
    ),
  );
}

function encryptedKey(wrappedKey: Buffer): Markup {
  return xml(
    'xenc:EncryptedKey',
    {},
    xml(
      'xenc:EncryptionMethod',
      { Algorithm: `${NS.encryption}rsa-oaep-mgf1p` },
      // OAEP does not depend on collision resistance, and every implementation supports SHA-1 here.
      xml('ds:DigestMethod', { Algorithm: `${NS.signature}sha1` }),
    ),
    cipherData(wrappedKey),
  );
}

function cipherData(bytes: Buffer): Markup {
  return xml('xenc:CipherData', {}, xml('xenc:CipherValue', {}, bytes.toString('base64')));
}
