// What the algorithms of imported hashes have in common: digests, encodings, salts, comparison.
import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import type { IHasher } from 'hash-wasm';
import { z } from 'zod';

/** Why a hash cannot be taken; told to whoever imports it. */
export class HashFault extends Error {}

/** @throws HashFault unless it holds. */
export function demand(holds: boolean, message: string): asserts holds {
  if (!holds) throw new HashFault(message);
}

/** Bytes of the digests that hashes may be of. */
export const DIGEST_BYTES: Readonly<Record<string, number>> = {
  md4: 16,
  md5: 16,
  ripemd160: 20,
  sha1: 20,
  sha224: 28,
  sha256: 32,
  sha384: 48,
  sha512: 64,
  whirlpool: 64,
};

/** A digest of {@link DIGEST_BYTES}. */
export async function digestOf(name: string, data: Uint8Array): Promise<Buffer> {
  const hasher = await hasherElsewhere(name);
  return hasher === undefined ? createHash(name).update(data).digest() : finished(hasher, data);
}

/** An HMAC (RFC 2104) with one of those digests. */
export async function hmacOf(name: string, key: Uint8Array, data: Uint8Array): Promise<Buffer> {
  const hasher = await hasherElsewhere(name);
  if (hasher === undefined) return createHmac(name, key).update(data).digest();
  const { createHMAC } = await import('hash-wasm');
  return finished(await createHMAC(Promise.resolve(hasher), key), data);
}

const finished = (hasher: IHasher, data: Uint8Array) =>
  Buffer.from(hasher.init().update(data).digest('binary'));

/** What computes a digest that Node.js has no more (RFC 1320, ISO/IEC 10118-3): loaded when somebody logs in by such a hash. */
async function hasherElsewhere(name: string): Promise<IHasher | undefined> {
  if (name !== 'md4' && name !== 'whirlpool') return undefined;
  const { createMD4, createWhirlpool } = await import('hash-wasm');
  return name === 'md4' ? createMD4() : createWhirlpool();
}

/** Compares in constant time. */
export function isSame(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && timingSafeEqual(a, b);
}

const PASSWORD_ENCODINGS = ['ascii', 'utf8', 'utf16le', 'ucs2', 'latin1', 'binary'] as const;
/** The highest character of those that do not know all of them. */
const HIGHEST: Partial<Record<(typeof PASSWORD_ENCODINGS)[number], number>> = {
  ascii: 0x7f,
  latin1: 0xff,
  binary: 0xff,
};

/** `custom_password_hash` of an import file. */
export const customPasswordHash = z.strictObject({
  algorithm: z.string(),
  hash: z.strictObject({
    value: z.string().min(1).max(2048),
    encoding: z.enum(['hex', 'base64', 'utf8']).optional(),
    digest: z.string().optional(),
    key: z
      .strictObject({
        value: z.string().min(1).max(1024),
        encoding: z.enum(['hex', 'base64', 'utf8']).optional(),
      })
      .optional(),
  }),
  salt: z
    .strictObject({
      value: z.string().max(1024),
      encoding: z.enum(['hex', 'base64', 'utf8', 'ascii', 'latin1', 'binary', 'ucs2', 'utf16le']).optional(),
      position: z.enum(['prefix', 'suffix']).optional(),
    })
    .optional(),
  password: z.strictObject({ encoding: z.enum(PASSWORD_ENCODINGS).optional() }).optional(),
  keylen: z.int().optional(),
  cost: z.int().optional(),
  blockSize: z.int().optional(),
  parallelization: z.int().optional(),
});

export type CustomHash = z.output<typeof customPasswordHash>;

/**
 * A password in the bytes that were hashed.
 * @returns undefined for one that the encoding cannot say: cut to it, another password would be as good.
 */
export function passwordBytes(password: string, custom: CustomHash): Buffer | undefined {
  const encoding = custom.password?.encoding ?? 'utf8';
  const highest = HIGHEST[encoding];
  if (highest !== undefined && [...password].some((letter) => (letter.codePointAt(0) ?? 0) > highest))
    return undefined;
  return Buffer.from(password, encoding);
}

/** The salt's bytes; none where there is none. @throws HashFault for what is not of its encoding. */
export function saltBytes({ salt }: CustomHash): Buffer {
  return salt === undefined ? Buffer.alloc(0) : decoded(salt.value, salt.encoding ?? 'utf8');
}

/** A password with the salt where it was. */
export function salted(password: Buffer, custom: CustomHash): Buffer {
  const salt = saltBytes(custom);
  return Buffer.concat(custom.salt?.position === 'suffix' ? [password, salt] : [salt, password]);
}

/** The bytes of a text. @throws HashFault for what is not of that encoding: cut short, it would match more. */
export function decoded(text: string, encoding: BufferEncoding): Buffer {
  const bytes = Buffer.from(text, encoding);
  if (encoding === 'hex') demand(bytes.toString('hex') === text.toLowerCase(), 'The value is not hex.');
  if (encoding === 'base64') {
    const plain = (value: string) => value.replace(/=+$/, '');
    demand(plain(bytes.toString('base64')) === plain(text), 'The value is not base64.');
  }
  return bytes;
}

/** The bytes of a hash, which must be as many as the algorithm makes. @throws HashFault */
export function hashBytes({ hash }: CustomHash, length: number): Buffer {
  demand(hash.encoding === 'hex' || hash.encoding === 'base64', 'hash.encoding must be hex or base64.');
  const bytes = decoded(hash.value, hash.encoding);
  demand(bytes.length === length, `hash.value must be ${length} bytes, and is ${bytes.length}.`);
  return bytes;
}

/** Of hashes whose text says its own salt. @throws HashFault */
export function refuseSalt(custom: CustomHash): void {
  demand(custom.salt === undefined, 'salt is not allowed: it is in hash.value.');
  const { encoding } = custom.hash;
  demand(encoding === undefined || encoding === 'utf8', 'hash.encoding must be utf8.');
}
