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

/** A value that passes between the sandbox and its host. */
export type Plain = string | Uint8Array;

const HASHES = new Set(['md5', 'sha1', 'sha256', 'sha384', 'sha512']);
const ENCODINGS = new Set(['utf8', 'hex', 'base64', 'base64url', 'latin1', 'utf16le']);
/** The limit of browsers (Web Cryptography §10.1.1), bytes. */
const MAX_RANDOM_BYTES = 65_536;
/** Limit of hashed blocks in a PBKDF2 call: nothing can interrupt a computation of Node.js, so it must be short. */
const MAX_ITERATIONS = 2_000_000;
/** Limit of bcrypt's cost: with the next one (2^16) a single call would exceed a run's processor time. */
const MAX_ROUNDS = 15;
/** bcrypt looks at no more than 72 bytes. Characters. */
const MAX_SECRET_LENGTH = 1024;

/** Calls the function that the shims call by that name. @throws Error whose message scripts may read. */
export function compute(
  name: string,
  [first = '', second = '', third = '', fourth = '']: readonly Plain[],
): Plain {
  const hostFunction = Object.hasOwn(HOST_FUNCTIONS, name) ? HOST_FUNCTIONS[name] : undefined;
  if (hostFunction === undefined) throw new Error(`there is no ${name}`);
  return hostFunction(first, second, third, fourth);
}

const HOST_FUNCTIONS: Record<string, (...args: Plain[]) => Plain> = {
  encode: (text, encoding) => Buffer.from(textOf(text), encodingOf(encoding)),
  decode: (bytes, encoding) => Buffer.from(bytesOf(bytes)).toString(encodingOf(encoding)),
  uuid: () => randomUUID(),
  random: (size) => {
    const byteCount = Number(size);
    if (!(byteCount >= 0 && byteCount <= MAX_RANDOM_BYTES))
      throw new Error(`at most ${MAX_RANDOM_BYTES} random bytes at once`);
    return randomBytes(byteCount);
  },
  hash: (name, data) => createHash(hashOf(name)).update(bytesOf(data)).digest(),
  hmac: (name, key, data) => createHmac(hashOf(name), secretOf(key)).update(bytesOf(data)).digest(),
  sign: (name, key, data) => signature(textOf(name)).sign(textOf(key), bytesOf(data)),
  verify: (name, key, data, value) =>
    String(signature(textOf(name)).verify(textOf(key), bytesOf(data), bytesOf(value))),
  pbkdf2: (password, salt, parameters) => {
    const { iterations, keylen, digest } = JSON.parse(textOf(parameters)) as Record<string, unknown>;
    const [rounds, length] = [Number(iterations), Number(keylen)];
    if (!Number.isInteger(rounds) || rounds < 1) throw new Error('the iterations are a number above 0');
    if (!Number.isInteger(length) || length < 1 || length > 1024) throw new Error('keylen is from 1 to 1024');
    const hash = hashOf(String(digest));
    // RFC 8018 §5.2: so many iterations for each block of the hash's length.
    const blocks = Math.ceil(length / createHash(hash).digest().length);
    if (rounds * blocks > MAX_ITERATIONS) throw new Error('it takes too many iterations');
    return pbkdf2Sync(bytesOf(password), bytesOf(salt), rounds, length, hash);
  },
  bcryptSalt: (rounds) => bcrypt.genSaltSync(roundsOf(textOf(rounds))),
  bcryptHash: (secret, salt) => {
    roundsOf(textOf(salt).split('$')[2] ?? '');
    return bcrypt.hashSync(shortText(secret), textOf(salt));
  },
  bcryptCompare: (secret, hash) => {
    const expected = textOf(hash);
    // As the `bcrypt` module: a text that is no hash matches no secret.
    if (!/^\$2[abxy]?\$\d\d\$.{53}$/.test(expected)) return 'false';
    roundsOf(expected.split('$')[2] ?? '');
    return String(bcrypt.compareSync(shortText(secret), expected));
  },
  href: (address, base) =>
    (base === '' ? URL.parse(textOf(address)) : URL.parse(textOf(address), textOf(base)))?.href ?? '',
  urlParts: (address) => urlParts(new URL(textOf(address))),
  urlWith: (address, part, value) => {
    const url = new URL(textOf(address));
    const name = textOf(part);
    if (PARTS.has(name)) Reflect.set(url, name, textOf(value));
    return urlParts(url);
  },
};

/** The parts of an address that can be set. */
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

function shortText(value: Plain | undefined): string {
  const text = textOf(value);
  if (text.length > MAX_SECRET_LENGTH) throw new Error(`at most ${MAX_SECRET_LENGTH} characters are hashed`);
  return text;
}

function roundsOf(text: string): number {
  const rounds = Number(text);
  if (!Number.isInteger(rounds) || rounds < 4 || rounds > MAX_ROUNDS)
    throw new Error(`the rounds are from 4 to ${MAX_ROUNDS}`);
  return rounds;
}

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

/** A key as the shims pass it. */
interface Key {
  text?: string;
  passphrase?: string;
  /** Base64. */
  bytes?: string;
  jwk?: JsonWebKeyInput['key'] & { k?: string };
}

function secretOf(key: Plain | undefined): Buffer {
  const { text, bytes, jwk } = JSON.parse(textOf(key)) as Key;
  if (text?.includes('-----BEGIN')) throw new Error('a key pair is no secret for an HMAC');
  if (text !== undefined) return Buffer.from(text);
  if (bytes !== undefined) return Buffer.from(bytes, 'base64');
  if (typeof jwk?.k === 'string') return Buffer.from(jwk.k, 'base64url');
  throw new Error('the key is no secret');
}

function keyOf(keyJson: string, isPrivate: boolean): KeyObject {
  const { text, passphrase, bytes, jwk } = JSON.parse(keyJson) as Key;
  const make = isPrivate ? createPrivateKey : createPublicKey;
  if (jwk !== undefined) return make({ key: jwk, format: 'jwk' });
  const key = text ?? Buffer.from(bytes ?? '', 'base64').toString();
  return passphrase === undefined ? make(key) : make({ key, passphrase });
}

interface Signature {
  sign(key: string, data: Uint8Array): Buffer;
  verify(key: string, data: Uint8Array, value: Uint8Array): boolean;
}

/**
 * Returns the functions of a signature algorithm.
 * @param name an algorithm of JSON Web Signatures (RFC 7518 §3.1, RFC 8037), or `node:` and a hash for any key pair.
 */
function signature(name: string): Signature {
  if (name.startsWith('node:')) return pair(hashOf(name.slice(5)), {});
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
