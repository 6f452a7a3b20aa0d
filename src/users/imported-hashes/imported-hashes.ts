// Password hashes of other systems: checked when they are imported, and verified at the first login, which replaces them.
// docs/understand/decisions/users-linking.md#password-hashes-of-other-systems-are-checked-when-they-are-imported

import { pbkdf2, type ScryptOptions, scrypt } from 'node:crypto';
import { promisify } from 'node:util';
import { verify as argon2Verify } from '@node-rs/argon2';
import bcrypt from 'bcryptjs';
import type { z } from 'zod';
import {
  assertHash,
  type CustomHash,
  customPasswordHash,
  DIGEST_BYTES,
  decoded,
  digestOf,
  HashFault,
  hashBytes,
  hmacOf,
  isSame,
  passwordBytes,
  refuseSalt,
  saltBytes,
  salted,
} from './imported-hashes-parts.ts';

const PREFIX = '$imported$';

/** Returns whether a stored hash was imported as a `custom_password_hash`. */
export function isImported(hash: string): boolean {
  return hash.startsWith(PREFIX);
}

/** An imported hash as it is stored, or why it is refused. */
type CheckedHash = { hash: string } | { fault: string; issue?: z.core.$ZodIssue };

/** Checks a `custom_password_hash` and returns it as it is stored. */
export function checkHash(value: unknown): CheckedHash {
  const parsed = customPasswordHash.safeParse(value, { reportInput: true });
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    return { fault: issue?.message ?? 'Invalid hash', ...(issue && { issue }) };
  }
  try {
    comparerOf(parsed.data);
  } catch (thrown) {
    if (thrown instanceof HashFault) return { fault: thrown.message };
    throw thrown;
  }
  return { hash: PREFIX + Buffer.from(JSON.stringify(parsed.data)).toString('base64url') };
}

/** Checks a `password_hash`, which is a bcrypt hash, and returns it as it is stored. */
export function checkBcrypt(value: string): CheckedHash {
  const checked = checkHash({ algorithm: 'bcrypt', hash: { value } });
  // Bcrypt without a salt of its own is stored unchanged.
  return 'hash' in checked ? { hash: value } : checked;
}

export function customHashOf(hash: string): CustomHash {
  return customPasswordHash.parse(JSON.parse(Buffer.from(hash.slice(PREFIX.length), 'base64url').toString()));
}

export async function verifyImported(hash: string, password: string): Promise<boolean> {
  const custom = customHashOf(hash);
  const bytes = passwordBytes(password, custom);
  return bytes !== undefined && comparerOf(custom)(bytes);
}

/** @throws HashFault if the hash is not accepted. */
function comparerOf(custom: CustomHash): Compare {
  if (!Object.hasOwn(ALGORITHMS, custom.algorithm))
    throw new HashFault(`algorithm must be one of ${Object.keys(ALGORITHMS).join(', ')}.`);
  const algorithm = ALGORITHMS[custom.algorithm];
  if (algorithm === undefined) throw new HashFault('There is no such algorithm.');
  return algorithm(custom);
}

// One function per algorithm. It checks a hash when it is imported, so that no login has to verify one that costs too much or
// is too weak, and returns a function that compares passwords with it.

/** Compares a password, as the bytes that were hashed, with a hash. */
type Compare = (password: Buffer) => Promise<boolean> | boolean;

/** Checks a hash and returns its comparison. @throws HashFault if the hash is not accepted. */
type Algorithm = (custom: CustomHash) => Compare;

const derive = promisify(pbkdf2);
const deriveScrypt = promisify<string | Buffer, Buffer, number, ScryptOptions, Buffer>(scrypt);

/** The shortest and the longest derived key, bytes. Too many passwords match a shorter one. */
const MIN_KEY_BYTES = 16;
const MAX_KEY_BYTES = 256;

/** The bytes that bcrypt hashes, including a salt before the password. */
const BCRYPT_BYTES = 72;
/** The bytes that a salt must leave for the password. */
const MIN_BCRYPT_PASSWORD_BYTES = 16;
const MAX_ROUNDS = 14;

const argon2: Algorithm = (custom) => {
  refuseSalt(custom);
  const { value } = custom.hash;
  const parts =
    /^\$argon2(?:id|i|d)(?:\$v=(?:16|19))?\$m=(\d{1,7}),t=(\d{1,3}),p=(\d{1,2})\$([\w+/]{11,128})\$([\w+/]{22,350})$/.exec(
      value,
    );
  assertHash(parts !== null, 'hash.value must be a PHC string of argon2.');
  const [memory, passes, lanes] = parts.slice(1, 4).map(Number) as [number, number, number];
  assertHash(
    memory <= 262_144 && passes <= 16 && lanes <= 16,
    'The cost is too high: m ≤ 262144, t ≤ 16, p ≤ 16.',
  );
  assertHash(memory * passes <= 1_048_576, 'The cost is too high: m × t ≤ 1048576.');
  assertHash(passes >= 1 && lanes >= 1 && memory >= 8 * lanes, 'The cost is none that argon2 knows.');
  return (password) => argon2Verify(value, password);
};

const bcryptHash: Algorithm = (custom) => {
  const { value, encoding } = custom.hash;
  assertHash(encoding === undefined || encoding === 'utf8', 'hash.encoding must be utf8.');
  const rounds = /^\$2[aby]\$(\d\d)\$[./A-Za-z0-9]{53}$/.exec(value)?.[1];
  assertHash(rounds !== undefined, 'hash.value must be a hash of bcrypt: $2a$, $2b$ or $2y$.');
  assertHash(
    Number(rounds) >= 4 && Number(rounds) <= MAX_ROUNDS,
    `The cost is too high: 4 to ${MAX_ROUNDS} rounds.`,
  );
  const isAfter = custom.salt?.position === 'suffix';
  assertHash(
    isAfter || saltBytes(custom).length <= BCRYPT_BYTES - MIN_BCRYPT_PASSWORD_BYTES,
    'The salt leaves too little of the 72 bytes of bcrypt to the password.',
  );
  // The library takes strings; bytes that are not valid UTF-8 never match.
  return (password) => {
    const bytes = salted(password, custom);
    const text = bytes.toString('utf8');
    return Buffer.from(text).equals(bytes) && bcrypt.compare(text, value);
  };
};

/** Returns the algorithm of a plain digest. */
const digest =
  (name: string): Algorithm =>
  (custom) => {
    const expected = hashBytes(custom, DIGEST_BYTES[name] ?? 0);
    saltBytes(custom);
    return async (password) => isSame(await digestOf(name, salted(password, custom)), expected);
  };

const hmac: Algorithm = (custom) => {
  const { digest: name = '', key } = custom.hash;
  const length = DIGEST_BYTES[name];
  assertHash(length !== undefined, `hash.digest must be one of ${Object.keys(DIGEST_BYTES).join(', ')}.`);
  assertHash(key !== undefined, 'hash.key.value is required.');
  const keyBytes = decoded(key.value, key.encoding ?? 'utf8');
  const expected = hashBytes(custom, length);
  saltBytes(custom);
  return async (password) => isSame(await hmacOf(name, keyBytes, salted(password, custom)), expected);
};

/** The digests of the schemes of RFC 2307 userPassword values, and of their successors with longer digests. */
const LDAP: Readonly<Record<string, string>> = {
  MD5: 'md5',
  SMD5: 'md5',
  SHA: 'sha1',
  SSHA: 'sha1',
  SHA256: 'sha256',
  SSHA256: 'sha256',
  SHA384: 'sha384',
  SSHA384: 'sha384',
  SHA512: 'sha512',
  SSHA512: 'sha512',
};

const ldap: Algorithm = (custom) => {
  refuseSalt(custom);
  const [, scheme = '', text = ''] = /^\{(\w{3,7})\}([A-Za-z0-9+/]+={0,2})$/.exec(custom.hash.value) ?? [];
  const name = LDAP[scheme.toUpperCase()];
  assertHash(
    name !== undefined,
    'hash.value must be {MD5}, {SMD5}, {SHA} or {SSHA} with its digest (RFC 2307).',
  );
  const bytes = decoded(text, 'base64');
  const length = DIGEST_BYTES[name] ?? 0;
  const isSalted = /^S(MD5|SHA)/i.test(scheme);
  const fits = isSalted ? bytes.length > length && bytes.length <= length + 128 : bytes.length === length;
  assertHash(fits, 'hash.value is not as long as its scheme makes it.');
  const [expected, salt] = [bytes.subarray(0, length), bytes.subarray(length)];
  return async (password) => isSame(await digestOf(name, Buffer.concat([password, salt])), expected);
};

/** The most iterations, multiplied by the number of blocks of the derived key (RFC 8018 §5.2). */
const MAX_ITERATIONS = 4_000_000;

const pbkdf2Hash: Algorithm = (custom) => {
  refuseSalt(custom);
  const [, name = '', parameters = '', saltText = '', hashText = ''] =
    /^\$pbkdf2-(sha1|sha224|sha256|sha384|sha512|md5)((?:\$[il]=\d{1,8}(?:,[il]=\d{1,8})?)?)\$([A-Za-z0-9+/]{0,512}={0,2})\$([A-Za-z0-9+/]{1,512}={0,2})$/.exec(
      custom.hash.value,
    ) ?? [];
  assertHash(name !== '', 'hash.value must be a PHC string such as $pbkdf2-sha256$i=100000,l=64$salt$hash.');
  const iterations = Number(/i=(\d+)/.exec(parameters)?.[1] ?? 100_000);
  const length = Number(/l=(\d+)/.exec(parameters)?.[1] ?? 64);
  assertHash(
    length >= MIN_KEY_BYTES && length <= MAX_KEY_BYTES,
    `l must be ${MIN_KEY_BYTES} to ${MAX_KEY_BYTES}.`,
  );
  const blocks = Math.ceil(length / (DIGEST_BYTES[name] ?? 1));
  assertHash(
    iterations >= 1 && iterations * blocks <= MAX_ITERATIONS,
    `The cost is too high: at most ${Math.floor(MAX_ITERATIONS / blocks)} iterations for this length.`,
  );
  const [salt, expected] = [decoded(saltText, 'base64'), decoded(hashText, 'base64')];
  assertHash(expected.length === length, `The hash must be ${length} bytes, as l says.`);
  return async (password) => isSame(await derive(password, salt, iterations, length, name), expected);
};

/** The most N × r × p; with 128 bytes each this is 256 MiB. */
const MAX_BLOCKS = 2 ** 21;

const scryptHash: Algorithm = (custom) => {
  const { keylen, cost = 16_384, blockSize = 8, parallelization = 1 } = custom;
  assertHash(keylen !== undefined, 'keylen is required.');
  assertHash(
    keylen >= MIN_KEY_BYTES && keylen <= MAX_KEY_BYTES,
    `keylen must be ${MIN_KEY_BYTES} to ${MAX_KEY_BYTES}.`,
  );
  assertHash(
    cost > 1 && cost <= 2 ** 20 && Number.isInteger(Math.log2(cost)),
    'cost must be a power of two, at most 1048576.',
  );
  assertHash(blockSize >= 1 && parallelization >= 1, 'blockSize and parallelization must be at least 1.');
  assertHash(
    cost * blockSize * parallelization <= MAX_BLOCKS,
    `The cost is too high: cost × blockSize × parallelization ≤ ${MAX_BLOCKS}.`,
  );
  const salt = saltBytes(custom);
  const expected = hashBytes(custom, keylen);
  const parameters = {
    N: cost,
    r: blockSize,
    p: parallelization,
    maxmem: 128 * blockSize * (cost + parallelization + 2) + 2 ** 20,
  };
  return async (password) => isSame(await deriveScrypt(password, salt, keylen, parameters), expected);
};

/** All algorithms, by the names of import files. */
const ALGORITHMS: Readonly<Record<string, Algorithm>> = {
  argon2,
  bcrypt: bcryptHash,
  hmac,
  ldap,
  md4: digest('md4'),
  md5: digest('md5'),
  sha1: digest('sha1'),
  sha256: digest('sha256'),
  sha512: digest('sha512'),
  pbkdf2: pbkdf2Hash,
  scrypt: scryptHash,
};
