// Secrets that must be read again (a TOTP secret is used at each login) are sealed: what leaks of the store
// alone does not give second factors away. The key is in a file of its own, beside the store and not in it; the
// store keeps a value that tells the right key from another, so that a lost key is noticed at the start and not
// by everybody who logs in.
import { createCipheriv, createDecipheriv, createHmac, createSecretKey, type KeyObject } from 'node:crypto';
import { mkdir, open, readFile, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Random } from '../runtime/random.ts';
import type { Store } from '../store/contract.ts';
import { naming, syncDirectory } from '../store/files.ts';
import { listAll } from '../store/list-all.ts';

export interface SecretBox {
  /** Seals a text for one purpose; opened for another it is none. @throws Error when the key cannot be made. */
  seal(text: string, purpose: string): Promise<string>;
  /** @throws Error when it was sealed with another key or for another purpose, or was changed. */
  open(sealed: string, purpose: string): Promise<string>;
}

export interface SecretBoxOptions {
  /** The key's file. */
  file: string;
  store: Store;
  random: Random;
}

const ALGORITHM = 'aes-256-gcm';
const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** The id of the key check value in the store. */
const CHECK = 'authenticators';

const RESTORE =
  'put it back from the backup; if it is lost for good, see `gatehouse keys reset-authenticators`';

/**
 * Opens a box. Its key is made when something is first sealed; from then on it must be there.
 * @throws Error naming the file when it is missing, no key, or not the key that the store's secrets are sealed with.
 */
export async function openSecretBox(options: SecretBoxOptions): Promise<SecretBox> {
  let found = await findKey(options);
  let making: Promise<KeyObject> | undefined;
  const key = async () => {
    making ??= makeKey(options);
    try {
      found = await making;
      return found;
    } finally {
      // A key that could not be made (the disk was full) is tried again with the next secret.
      making = undefined;
    }
  };
  return {
    seal: async (text, purpose) => seal(found ?? (await key()), options.random, text, purpose),
    open: async (sealed, purpose) => {
      if (found === undefined) throw new Error(`${options.file}: nothing was sealed with a key yet`);
      return unseal(found, sealed, purpose);
    },
  };
}

/**
 * For a key that is lost for good: removes the authenticators that the key in the file (if there is any) does not
 * open, and takes that key from now on.
 * @returns how many were removed.
 */
export async function resetSealed(options: SecretBoxOptions): Promise<number> {
  const { file, store } = options;
  const key = await readKey(file).catch(() => undefined);
  const lost = (await sealedIn(store)).filter((one) => key === undefined || !opens(key, one));
  for (const { id } of lost) await store.collection('authenticators').delete(id);
  if (key === undefined) {
    await rm(file, { force: true });
    await store.collection('keyChecks').delete(CHECK);
  } else {
    await keepCheck(store, key);
  }
  return lost.length;
}

/** The key, where there is one and it is the right one. @throws Error naming the file otherwise. */
async function findKey({ file, store }: SecretBoxOptions): Promise<KeyObject | undefined> {
  const known = await store.collection('keyChecks').get(CHECK);
  const key = await readKey(file);
  // A store of an older release has no check value: what is sealed in it tells.
  const sealed = known === undefined ? await sealedIn(store) : [];
  if (key === undefined) {
    if (known === undefined && sealed.length === 0) return undefined;
    throw new Error(
      `${file} is missing, which the secrets of authenticator apps are sealed with: ${RESTORE}`,
    );
  }
  const isRight =
    known === undefined
      ? sealed.length === 0 || sealed.some((one) => opens(key, one))
      : known.value === checkOf(key);
  if (!isRight) {
    throw new Error(
      `${file} is another key than the secrets of authenticator apps are sealed with: ${RESTORE}`,
    );
  }
  if (known === undefined) await keepCheck(store, key);
  return key;
}

/** @returns undefined where there is no file. @throws Error naming the file when it holds no key. */
async function readKey(file: string): Promise<KeyObject | undefined> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new Error(`${file} cannot be read (${(thrown as Error).message})`, { cause: thrown });
  }
  const bytes = Buffer.from(text.trim(), 'base64url');
  if (bytes.length === KEY_BYTES) return createSecretKey(bytes);
  throw new Error(`${file} holds no key of ${KEY_BYTES} bytes: ${RESTORE}`);
}

/** Makes the key, whole or not at all. */
async function makeKey({ file, store, random }: SecretBoxOptions): Promise<KeyObject> {
  const directory = dirname(file);
  await mkdir(directory, { recursive: true, mode: 0o700 });
  // There is one where an earlier try came no further.
  let key = await readKey(file);
  if (key === undefined) {
    const part = `${file}.new`;
    const bytes = random(KEY_BYTES);
    const handle = await open(part, 'w', 0o600);
    try {
      await naming(part, handle.writeFile(bytes.toString('base64url')));
      await naming(part, handle.sync());
    } finally {
      await handle.close();
    }
    await rename(part, file);
    await syncDirectory(directory);
    key = createSecretKey(bytes);
  }
  // Only then is anything sealed with it: what is sealed always has a key on disk and a value that tells it.
  await keepCheck(store, key);
  return key;
}

const keepCheck = (store: Store, key: KeyObject) =>
  store.collection('keyChecks').put({ id: CHECK, value: checkOf(key) });

/** A value that tells one key from another and gives nothing of it away: the key is random in all its bits. */
function checkOf(key: KeyObject): string {
  return createHmac('sha256', key).update('gatehouse key check value').digest('base64url');
}

interface Sealed {
  id: string;
  sealedSecret: string;
}

async function sealedIn(store: Store): Promise<Sealed[]> {
  const all = await listAll(store.collection('authenticators'));
  return all.flatMap(({ id, sealedSecret }) => (sealedSecret === undefined ? [] : [{ id, sealedSecret }]));
}

function opens(key: KeyObject, { id, sealedSecret }: Sealed): boolean {
  try {
    unseal(key, sealedSecret, id);
    return true;
  } catch {
    return false;
  }
}

function seal(key: KeyObject, random: Random, text: string, purpose: string): string {
  const nonce = random(NONCE_BYTES);
  const cipher = createCipheriv(ALGORITHM, key, nonce, { authTagLength: TAG_BYTES });
  cipher.setAAD(Buffer.from(purpose));
  const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
  return Buffer.concat([nonce, cipher.getAuthTag(), sealed]).toString('base64url');
}

function unseal(key: KeyObject, sealed: string, purpose: string): string {
  const bytes = Buffer.from(sealed, 'base64url');
  const nonce = bytes.subarray(0, NONCE_BYTES);
  const decipher = createDecipheriv(ALGORITHM, key, nonce, { authTagLength: TAG_BYTES });
  decipher.setAAD(Buffer.from(purpose));
  decipher.setAuthTag(bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES));
  const text = decipher.update(bytes.subarray(NONCE_BYTES + TAG_BYTES));
  return Buffer.concat([text, decipher.final()]).toString('utf8');
}
