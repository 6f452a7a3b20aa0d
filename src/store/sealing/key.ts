// The key that secrets are sealed with: the setting SECRETS_KEY, or a file outside the store, so that a leaked store
// alone reveals no secret.
import { createHmac, createSecretKey, type KeyObject } from 'node:crypto';
import { mkdir, open, readFile, rename } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileMode, naming, syncDirectory } from '../../runtime/files.ts';
import type { Random } from '../../runtime/secrets.ts';

const KEY_BYTES = 32;

/** @param dataDir the data directory of the server. */
export function keyFile(dataDir: string): string {
  return join(dataDir, 'keys', 'secrets.key');
}

/** Parses a key from a setting: 32 bytes in base64, base64url or hexadecimal. @returns undefined for any other text. */
export function parseKey(text: string): KeyObject | undefined {
  if (/^[0-9a-f]{64}$/i.test(text)) return createSecretKey(Buffer.from(text, 'hex'));
  return /^[\w+/-]{43}=?$/.test(text) ? createSecretKey(Buffer.from(text, 'base64url')) : undefined;
}

/**
 * Returns whether a key was probably typed or copied from an example rather than generated: it has few distinct bytes.
 */
export function isGuessable(key: KeyObject): boolean {
  return new Set(key.export()).size < KEY_BYTES / 2;
}

/**
 * Returns the check value of a key: it distinguishes keys and does not reveal the key, all of whose bits are random.
 */
export function checkOf(key: KeyObject): string {
  return createHmac('sha256', key).update('gatehouse key check value').digest('base64url');
}

/** @returns undefined if there is no file. @throws Error naming the file when it holds no key. */
export async function keyIn(file: string): Promise<KeyObject | undefined> {
  const text = await textOf(file);
  if (text === undefined) return undefined;
  const bytes = Buffer.from(text.trim(), 'base64url');
  if (bytes.length === KEY_BYTES) return createSecretKey(bytes);
  throw new Error(`${file} holds no key of ${KEY_BYTES} bytes: ${RESTORE}`);
}

/** @throws Error naming the file when it cannot be written. */
export async function makeKey(file: string, random: Random): Promise<KeyObject> {
  const directory = dirname(file);
  const part = `${file}.part`;
  const bytes = random(KEY_BYTES);
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const handle = await open(part, 'w', fileMode);
  try {
    await naming(part, handle.writeFile(bytes.toString('base64url')));
    await naming(part, handle.sync());
  } finally {
    await handle.close();
  }
  await rename(part, file);
  await syncDirectory(directory);
  return createSecretKey(bytes);
}

// docs/understand/decisions/operating.md#a-lost-key-prevents-the-start
/** The advice for a key that is missing or wrong. */
export const RESTORE = 'put it back from the backup; if it is lost for good, see `gatehouse keys reset`';

async function textOf(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, 'utf8');
  } catch (thrown) {
    const { code, message } = thrown as NodeJS.ErrnoException;
    if (code === 'ENOENT') return undefined;
    throw new Error(`${file} cannot be read (${message})`, { cause: thrown });
  }
}
