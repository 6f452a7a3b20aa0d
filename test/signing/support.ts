// Keys outside of the server, in a directory that a stand-in reads.
import { generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export type Mode = 'signs' | 'fails' | 'hangs' | 'floods' | 'lies' | 'der';

export interface OutsideKeys {
  /** The value of SIGNING_COMMAND. */
  command: string;
  directory: string;
  be(mode: Mode): void;
  /** Adds a key after the others. */
  add(alg: string, kid: string): void;
  /** Returns the arguments and the environment of its last run. */
  seen(): { arguments: string[]; environment: Record<string, string> };
  /** The private keys, as JWKs. */
  keys: (Record<string, unknown> & { kid: string; alg: string })[];
  remove(): void;
}

const PROGRAM = fileURLToPath(new URL('programs/signer.ts', import.meta.url));

/** Makes a program with a key for each `<alg>-<n>`, which is the key's `kid`. */
export function outsideKeys(...kids: string[]): OutsideKeys {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-signer-'));
  const keys: OutsideKeys['keys'] = [];
  const add: OutsideKeys['add'] = (alg, kid) => {
    keys.push({ ...privateKey(alg).export({ format: 'jwk' }), alg, kid });
    writeFileSync(join(directory, 'keys.json'), JSON.stringify({ keys }));
  };
  const be: OutsideKeys['be'] = (mode) => writeFileSync(join(directory, 'mode'), mode);
  for (const kid of kids) add(kid.split('-')[0] ?? '', kid);
  be('signs');
  return {
    command: `${process.execPath} ${PROGRAM} ${directory}`,
    directory,
    be,
    add,
    keys,
    seen: () => JSON.parse(readFileSync(join(directory, 'seen.json'), 'utf8')),
    remove: () => rmSync(directory, { maxRetries: 10, recursive: true, force: true }),
  };
}

function privateKey(alg: string) {
  if (alg === 'ES256') return generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;
  if (alg === 'EdDSA') return generateKeyPairSync('ed25519').privateKey;
  return generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey;
}
