// Functions that the algorithms of imported hashes share: digests, encodings, salts, comparison.

import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import type { IHasher } from 'hash-wasm';
import { z } from 'zod';
import { withoutEnd } from '../../runtime/without-end.ts';

/** Thrown for a hash that is refused; whoever imports it sees the message. */
export class HashFault extends Error {}

/** @throws HashFault with the message if it does not hold. */
export function assertHash(holds: boolean, message: string): asserts holds {
  if (!holds) throw new HashFault(message);
}

/** The length in bytes of each supported digest. */
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

/** @param name in {@link DIGEST_BYTES}. */
export async function digestOf(name: string, data: Uint8Array): Promise<Buffer> {
  const hasher = await hasherOutsideNode(name);
  return hasher === undefined ? createHash(name).update(data).digest() : finished(hasher, data);
}

/** Returns an HMAC (RFC 2104) of data. @param name of the digest, in {@link DIGEST_BYTES}. */
export async function hmacOf(name: string, key: Uint8Array, data: Uint8Array): Promise<Buffer> {
  const hasher = await hasherOutsideNode(name);
  if (hasher === undefined) return createHmac(name, key).update(data).digest();
  const { createHMAC } = await import('hash-wasm');
  return finished(await createHMAC(Promise.resolve(hasher), key), data);
}

const finished = (hasher: IHasher, data: Uint8Array) =>
  Buffer.from(hasher.init().update(data).digest('binary'));

/** Returns the implementation of a digest that Node.js lacks: MD4 (RFC 1320), Whirlpool (ISO/IEC 10118-3). Loads it when needed. */
async function hasherOutsideNode(name: string): Promise<IHasher | undefined> {
  if (name !== 'md4' && name !== 'whirlpool') return undefined;
  const { createMD4, createWhirlpool } = await import('hash-wasm');
  return name === 'md4' ? createMD4() : createWhirlpool();
}

/** Compares bytes in constant time. */
export function isSame(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && timingSafeEqual(a, b);
}

const PASSWORD_ENCODINGS = ['ascii', 'utf8', 'utf16le', 'ucs2', 'latin1', 'binary'] as const;
/** The highest code point of the encodings that cannot encode all of Unicode. */
const MAX_CODE_POINT: Partial<Record<(typeof PASSWORD_ENCODINGS)[number], number>> = {
  ascii: 0x7f,
  latin1: 0xff,
  binary: 0xff,
};

/** The schema of `custom_password_hash` in an import file. */
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
 * Returns a password as the bytes that were hashed.
 * @returns undefined if the encoding cannot represent it: with characters truncated, another password would match, too.
 */
export function passwordBytes(password: string, custom: CustomHash): Buffer | undefined {
  const encoding = custom.password?.encoding ?? 'utf8';
  const highest = MAX_CODE_POINT[encoding];
  if (highest !== undefined && [...password].some((letter) => (letter.codePointAt(0) ?? 0) > highest))
    return undefined;
  return Buffer.from(password, encoding);
}

/** Returns the bytes of the salt; empty without one. @throws HashFault if the value is not valid in its encoding. */
export function saltBytes({ salt }: CustomHash): Buffer {
  return salt === undefined ? Buffer.alloc(0) : decoded(salt.value, salt.encoding ?? 'utf8');
}

/** Returns a password with the salt before or after it. */
export function salted(password: Buffer, custom: CustomHash): Buffer {
  const salt = saltBytes(custom);
  return Buffer.concat(custom.salt?.position === 'suffix' ? [password, salt] : [salt, password]);
}

/** Returns the bytes of a string. @throws HashFault if it is not valid in the encoding; a truncated value would be weaker. */
export function decoded(text: string, encoding: BufferEncoding): Buffer {
  const bytes = Buffer.from(text, encoding);
  if (encoding === 'hex') assertHash(bytes.toString('hex') === text.toLowerCase(), 'The value is not hex.');
  if (encoding === 'base64') {
    const plain = (value: string) => withoutEnd(value, '=');
    assertHash(plain(bytes.toString('base64')) === plain(text), 'The value is not base64.');
  }
  return bytes;
}

/** Returns the bytes of a hash. @throws HashFault if there are not `length` bytes, or the encoding is invalid. */
export function hashBytes({ hash }: CustomHash, length: number): Buffer {
  assertHash(hash.encoding === 'hex' || hash.encoding === 'base64', 'hash.encoding must be hex or base64.');
  const bytes = decoded(hash.value, hash.encoding);
  assertHash(bytes.length === length, `hash.value must be ${length} bytes, and is ${bytes.length}.`);
  return bytes;
}

/** Refuses a salt for algorithms whose hash value contains it. @throws HashFault */
export function refuseSalt(custom: CustomHash): void {
  assertHash(custom.salt === undefined, 'salt is not allowed: it is in hash.value.');
  const { encoding } = custom.hash;
  assertHash(encoding === undefined || encoding === 'utf8', 'hash.encoding must be utf8.');
}
