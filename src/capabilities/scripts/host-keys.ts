// The keys and signatures of scripts. Nothing can interrupt Node.js while it reads a key or computes with it, so the cost
// is known before: how large the key is, and how many rounds its encryption takes.
import {
  constants,
  createHmac,
  createPrivateKey,
  createPublicKey,
  type JsonWebKeyInput,
  type KeyObject,
  sign,
  verify,
} from 'node:crypto';
import { assertPrivateKeySize, pemKey } from '../../runtime/pem-keys.ts';

/** Others, such as DSA, compute with numbers of any length when they are read. */
const KEY_TYPES: readonly (string | undefined)[] = ['rsa', 'rsa-pss', 'ec', 'ed25519', 'ed448'];

/** A key as the shims pass it. */
interface Key {
  text?: string;
  passphrase?: string;
  /** Base64. */
  bytes?: string;
  jwk?: JsonWebKeyInput['key'] & { k?: string };
}

/** Reads the secret of an HMAC. @throws Error when it is a key pair, or none. */
export function secretOf(keyJson: string): Buffer {
  const { text, bytes, jwk } = JSON.parse(keyJson) as Key;
  if (text?.includes('-----BEGIN')) throw new Error('a key pair is no secret for an HMAC');
  if (text !== undefined) return Buffer.from(text);
  if (bytes !== undefined) return Buffer.from(bytes, 'base64');
  if (typeof jwk?.k === 'string') return Buffer.from(jwk.k, 'base64url');
  throw new Error('the key is no secret');
}

function keyOf(keyJson: string, isPrivate: boolean): KeyObject {
  const { text, passphrase, bytes, jwk } = JSON.parse(keyJson) as Key;
  const key =
    jwk === undefined
      ? pemKey(text ?? Buffer.from(bytes ?? '', 'base64').toString(), passphrase)
      : (isPrivate ? createPrivateKey : createPublicKey)({ key: jwk, format: 'jwk' });
  if (!KEY_TYPES.includes(key.asymmetricKeyType)) throw new Error('keys of this type are not supported');
  if (key.type === 'private') assertPrivateKeySize(key.export({ type: 'pkcs8', format: 'der' }));
  if (isPrivate === (key.type === 'private')) return key;
  if (isPrivate) throw new Error('the key is not a private key');
  return createPublicKey(key);
}

interface Signature {
  sign(key: string, data: Uint8Array): Buffer;
  verify(key: string, data: Uint8Array, value: Uint8Array): boolean;
}

/**
 * Returns the functions of a signature algorithm of JSON Web Signatures (RFC 7518 §3.1, RFC 8037).
 * @throws Error when there is no such algorithm.
 */
export function signature(name: string): Signature {
  const [, kind, bits] = /^(HS|RS|PS|ES)(256|384|512)$/.exec(name) ?? [];
  if (name === 'EdDSA' || name === 'Ed25519') return pair(undefined, {});
  if (kind === undefined) throw new Error(`the algorithm ${name} is not supported`);
  const hash = `sha${bits}`;
  if (kind === 'HS') {
    const mac = (key: string, data: Uint8Array) => createHmac(hash, secretOf(key)).update(data).digest();
    return { sign: mac, verify: (key, data, value) => mac(key, data).equals(value) };
  }
  if (kind === 'ES') return pair(hash, { dsaEncoding: 'ieee-p1363' }, 'ec');
  if (kind === 'RS') return pair(hash, {}, 'rsa');
  const padding = { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_DIGEST };
  return pair(hash, padding, 'rsa');
}

/** Returns the functions of a signature with a hash and a key pair. @param type the only type of key, if not any. */
export function pair(hash: string | undefined, options: object, type?: string): Signature {
  const read = (keyJson: string, isPrivate: boolean) => {
    const key = keyOf(keyJson, isPrivate);
    if (type !== undefined && key.asymmetricKeyType?.split('-')[0] !== type) {
      throw new Error(`the algorithm wants an ${type} key`);
    }
    return key;
  };
  return {
    sign: (key, data) => sign(hash, data, { key: read(key, true), ...options }),
    verify: (key, data, value) => verify(hash, data, { key: read(key, false), ...options }, value),
  };
}
