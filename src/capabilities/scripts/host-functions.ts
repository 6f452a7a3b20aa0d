// What the sandbox cannot compute by itself: text and bytes, addresses, hashes, signatures. These functions take and
// return only text and bytes.
import { createHash, createHmac, pbkdf2Sync, randomBytes, randomUUID } from 'node:crypto';
import bcrypt from 'bcryptjs';
import { pair, secretOf, signature } from './host-keys.ts';

/** A value that passes between the sandbox and its host. */
export type Plain = string | Uint8Array;

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
 * Checks the arguments of a call.
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
