// What the sandbox cannot compute by itself: text and bytes, addresses, hashes, signatures. These functions take and
// return only text and bytes.
import {
  constants,
  createHash,
  createHmac,
  createPrivateKey,
  createPublicKey,
  type JsonWebKeyInput,
  type KeyObject,
  pbkdf2Sync,
  randomBytes,
  randomUUID,
  sign,
  verify,
} from 'node:crypto';
import bcrypt from 'bcryptjs';
import { assertPrivateKeySize, pemKey } from '../../runtime/pem-keys.ts';

/** A value that passes between the sandbox and its host. */
export type Plain = string | Uint8Array;

// docs/understand/decisions/actions-scripts.md#what-the-host-computes-for-a-script-is-bounded-before-it-starts
/**
 * A function of the host. Nothing can interrupt Node.js while it computes, not even the end of the thread, so that the
 * cost of a call is bounded before it starts.
 */
export interface HostFunction {
  /** The largest size of each argument, bytes or characters. There are no further arguments. */
  most: readonly number[];
  /** What its cost depends on: the sizes only, or something that is checked here. @throws Error when it is too much. */
  cost: 'size' | ((...args: Plain[]) => void);
  compute(...args: Plain[]): Plain;
}

const HASHES = new Set(['md5', 'sha1', 'sha256', 'sha384', 'sha512']);
const ENCODINGS = new Set(['utf8', 'hex', 'base64', 'base64url', 'latin1', 'utf16le']);
/** The limit of browsers (Web Cryptography §10.1.1), bytes. */
const MAX_RANDOM_BYTES = 65_536;
/** Limit of rounds in a PBKDF2 call, of a hash of 256 bits: about a second. */
const MAX_ROUNDS = 2_000_000;
/** Limit of bcrypt's cost: with the next one (2^16) a single call would exceed a run's processor time. */
const MAX_BCRYPT_COST = 15;
/** bcrypt looks at no more than 72 bytes. Characters. */
const MAX_SECRET_LENGTH = 1024;

/** Largest text or bytes that are converted, hashed or signed. */
const MAX_DATA_SIZE = 16 * 1024 * 1024;
/** Longest key as JSON: a certificate, or a JSON Web Key with a chain of them. Characters. */
const MAX_KEY_LENGTH = 65_536;
/** Longest address. Characters. */
const MAX_ADDRESS_LENGTH = 65_536;
/** Longest name of an algorithm, an encoding or a part, and longest number. Characters. */
const MAX_NAME_LENGTH = 100;
/** Largest signature, bytes: RSA of 16,384 bits. */
const MAX_SIGNATURE_BYTES = 2_048;
const MAX_SALT_BYTES = 65_536;

/** Calls the function that the shims call by that name. @throws Error whose message scripts may read. */
export function compute(name: string, args: readonly Plain[]): Plain {
  const hostFunction = Object.hasOwn(HOST_FUNCTIONS, name) ? HOST_FUNCTIONS[name] : undefined;
  if (hostFunction === undefined) throw new Error(`there is no ${name}`);
  const given = assertSizes(name, hostFunction.most, args);
  if (hostFunction.cost !== 'size') hostFunction.cost(...given);
  return hostFunction.compute(...given);
}

/**
 * @param most the largest size of each.
 * @returns as many arguments as there are sizes; empty text for those that were not given.
 * @throws Error when one is larger.
 */
export function assertSizes(name: string, most: readonly number[], args: readonly Plain[]): Plain[] {
  return most.map((size, index) => {
    const arg = args[index] ?? '';
    if (arg.length > size) throw new Error(`${name} takes at most ${size} characters or bytes`);
    return arg;
  });
}

export const HOST_FUNCTIONS: Readonly<Record<string, HostFunction>> = {
  encode: {
    most: [MAX_DATA_SIZE, MAX_NAME_LENGTH],
    cost: 'size',
    compute: (text, encoding) => Buffer.from(textOf(text), encodingOf(encoding)),
  },
  decode: {
    most: [MAX_DATA_SIZE, MAX_NAME_LENGTH],
    cost: 'size',
    compute: (bytes, encoding) => Buffer.from(bytesOf(bytes)).toString(encodingOf(encoding)),
  },
  uuid: { most: [], cost: 'size', compute: () => randomUUID() },
  random: {
    most: [MAX_NAME_LENGTH],
    cost: (size) => {
      const byteCount = Number(size);
      if (!(byteCount >= 0 && byteCount <= MAX_RANDOM_BYTES))
        throw new Error(`at most ${MAX_RANDOM_BYTES} random bytes at once`);
    },
    compute: (size) => randomBytes(Number(size)),
  },
  hash: {
    most: [MAX_NAME_LENGTH, MAX_DATA_SIZE],
    cost: 'size',
    compute: (name, data) => createHash(hashOf(name)).update(bytesOf(data)).digest(),
  },
  hmac: {
    most: [MAX_NAME_LENGTH, MAX_KEY_LENGTH, MAX_DATA_SIZE],
    cost: 'size',
    compute: (name, key, data) =>
      createHmac(hashOf(name), secretOf(textOf(key)))
        .update(bytesOf(data))
        .digest(),
  },
  // The keys have bounds of their own.
  sign: {
    most: [MAX_NAME_LENGTH, MAX_KEY_LENGTH, MAX_DATA_SIZE],
    cost: 'size',
    compute: (name, key, data) => signatureOf(name).sign(textOf(key), bytesOf(data)),
  },
  verify: {
    most: [MAX_NAME_LENGTH, MAX_KEY_LENGTH, MAX_DATA_SIZE, MAX_SIGNATURE_BYTES],
    cost: 'size',
    compute: (name, key, data, value) =>
      String(signatureOf(name).verify(textOf(key), bytesOf(data), bytesOf(value))),
  },
  pbkdf2: {
    most: [MAX_SALT_BYTES, MAX_SALT_BYTES, MAX_NAME_LENGTH * 10],
    cost: (_password, _salt, parameters) => {
      const { rounds, length, hash } = pbkdf2Parameters(parameters);
      if (!Number.isInteger(rounds) || rounds < 1) throw new Error('the iterations are a number above 0');
      if (!Number.isInteger(length) || length < 1 || length > 1024)
        throw new Error('keylen is from 1 to 1024');
      // RFC 8018 §5.2: so many iterations for each block of the hash's length.
      const hashBytes = createHash(hash).digest().length;
      const factor = Math.ceil(length / hashBytes) * (hashBytes > 32 ? 2 : 1);
      if (rounds * factor > MAX_ROUNDS) throw new Error('it takes too many iterations');
    },
    compute: (password, salt, parameters) => {
      const { rounds, length, hash } = pbkdf2Parameters(parameters);
      return pbkdf2Sync(bytesOf(password), bytesOf(salt), rounds, length, hash);
    },
  },
  bcryptSalt: {
    most: [MAX_NAME_LENGTH],
    cost: (cost) => assertBcryptCost(textOf(cost)),
    compute: (cost) => bcrypt.genSaltSync(Number(cost)),
  },
  bcryptHash: {
    most: [MAX_SECRET_LENGTH, MAX_NAME_LENGTH],
    cost: (_secret, salt) => assertBcryptCost(textOf(salt).split('$')[2] ?? ''),
    compute: (secret, salt) => bcrypt.hashSync(textOf(secret), textOf(salt)),
  },
  bcryptCompare: {
    most: [MAX_SECRET_LENGTH, MAX_SECRET_LENGTH],
    cost: (_secret, hash) => {
      if (isBcryptHash(hash)) assertBcryptCost(textOf(hash).split('$')[2] ?? '');
    },
    // As the `bcrypt` module: a text that is no hash matches no secret.
    compute: (secret, hash) => String(isBcryptHash(hash) && bcrypt.compareSync(textOf(secret), textOf(hash))),
  },
  href: {
    most: [MAX_ADDRESS_LENGTH, MAX_ADDRESS_LENGTH],
    cost: 'size',
    compute: (address, base) =>
      (base === '' ? URL.parse(textOf(address)) : URL.parse(textOf(address), textOf(base)))?.href ?? '',
  },
  urlParts: {
    most: [MAX_ADDRESS_LENGTH],
    cost: 'size',
    compute: (address) => urlParts(new URL(textOf(address))),
  },
  urlWith: {
    most: [MAX_ADDRESS_LENGTH, MAX_NAME_LENGTH, MAX_ADDRESS_LENGTH],
    cost: 'size',
    compute: (address, part, value) => {
      const url = new URL(textOf(address));
      const name = textOf(part);
      if (PARTS.has(name)) Reflect.set(url, name, textOf(value));
      return urlParts(url);
    },
  },
};

function pbkdf2Parameters(parameters: Plain | undefined) {
  const { iterations, keylen, digest } = JSON.parse(textOf(parameters)) as Record<string, unknown>;
  return { rounds: Number(iterations), length: Number(keylen), hash: hashOf(String(digest)) };
}

/** @param name an algorithm of JSON Web Signatures, or `node:` and a hash for any key pair. */
function signatureOf(name: Plain | undefined) {
  const text = textOf(name);
  return text.startsWith('node:') ? pair(hashOf(text.slice(5)), {}) : signature(text);
}

const PARTS = new Set([
  'protocol',
  'username',
  'password',
  'host',
  'hostname',
  'port',
  'pathname',
  'search',
  'hash',
]);

function urlParts(url: URL): string {
  const { href, origin, protocol, username, password, host, hostname, port, pathname, search, hash } = url;
  const parts = { href, origin, protocol, username, password, host, hostname, port, pathname, search, hash };
  return JSON.stringify(parts);
}

function textOf(value: Plain | undefined): string {
  if (typeof value !== 'string') throw new Error('text is expected');
  return value;
}

function assertBcryptCost(text: string): void {
  const cost = Number(text);
  if (!Number.isInteger(cost) || cost < 4 || cost > MAX_BCRYPT_COST)
    throw new Error(`the rounds are from 4 to ${MAX_BCRYPT_COST}`);
}

const isBcryptHash = (hash: Plain | undefined): boolean => /^\$2[abxy]?\$\d\d\$.{53}$/.test(textOf(hash));

function bytesOf(value: Plain | undefined): Uint8Array {
  if (value === undefined || typeof value === 'string') throw new Error('bytes are expected');
  return value;
}

function encodingOf(value: Plain | undefined): BufferEncoding {
  const name = textOf(value);
  if (!ENCODINGS.has(name)) throw new Error(`Unknown encoding: ${name}`);
  return name as BufferEncoding;
}

function hashOf(value: Plain | undefined): string {
  const name = textOf(value);
  if (!HASHES.has(name)) throw new Error(`Digest method not supported: ${name}`);
  return name;
}

// The keys and signatures of scripts. Nothing can interrupt Node.js while it reads a key or computes with it, so the cost
// is known before: how large the key is, and how many rounds its encryption takes.

/** Others, such as DSA, compute with numbers of any length when they are read. */
const KEY_TYPES: readonly (string | undefined)[] = ['rsa', 'rsa-pss', 'ec', 'ed25519', 'ed448'];

interface Key {
  text?: string;
  passphrase?: string;
  /** Base64. */
  bytes?: string;
  jwk?: JsonWebKeyInput['key'] & { k?: string };
}

/** Reads the secret of an HMAC. @throws Error when it is a key pair, or none. */
function secretOf(keyJson: string): Buffer {
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
function signature(name: string): Signature {
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
function pair(hash: string | undefined, options: object, type?: string): Signature {
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
