// Secrets that must be read again (a TOTP secret is used at each login) are sealed: what leaks of the store
// alone does not give second factors away.
import { createCipheriv, createDecipheriv, createSecretKey, type KeyObject } from 'node:crypto';
import { mkdir, open, readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Random } from '../http/runtime.ts';

export interface SecretBox {
  /** Seals a text for one purpose; opened for another it is none. */
  seal(text: string, purpose: string): Promise<string>;
  /** @throws Error when it was sealed with another key or for another purpose, or was changed. */
  open(sealed: string, purpose: string): Promise<string>;
}

const ALGORITHM = 'aes-256-gcm';
const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** A box whose key is in a file of its own, beside the store and not in it; made when it is first needed. */
export function createSecretBox(file: string, random: Random): SecretBox {
  let loaded: Promise<KeyObject> | undefined;
  const key = () => {
    loaded ??= loadKey(file, random);
    return loaded;
  };
  return {
    seal: async (text, purpose) => {
      const nonce = random(NONCE_BYTES);
      const cipher = createCipheriv(ALGORITHM, await key(), nonce, { authTagLength: TAG_BYTES });
      cipher.setAAD(Buffer.from(purpose));
      const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
      return Buffer.concat([nonce, cipher.getAuthTag(), sealed]).toString('base64url');
    },
    open: async (sealed, purpose) => {
      const bytes = Buffer.from(sealed, 'base64url');
      const nonce = bytes.subarray(0, NONCE_BYTES);
      const decipher = createDecipheriv(ALGORITHM, await key(), nonce, { authTagLength: TAG_BYTES });
      decipher.setAAD(Buffer.from(purpose));
      decipher.setAuthTag(bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES));
      const text = decipher.update(bytes.subarray(NONCE_BYTES + TAG_BYTES));
      return Buffer.concat([text, decipher.final()]).toString('utf8');
    },
  };
}

async function loadKey(file: string, random: Random): Promise<KeyObject> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  try {
    const handle = await open(file, 'wx', 0o600);
    try {
      await handle.writeFile(random(KEY_BYTES).toString('base64url'));
      await handle.sync();
    } finally {
      await handle.close();
    }
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code !== 'EEXIST') throw thrown;
  }
  const bytes = Buffer.from(await readFile(file, 'utf8'), 'base64url');
  if (bytes.length !== KEY_BYTES) throw new Error(`${file} holds no key of ${KEY_BYTES} bytes`);
  return createSecretKey(bytes);
}
