// A stand-in for a program that signs with keys elsewhere: `signer.ts <directory> keys | sign <alg> <kid>`. The
// directory has the private keys (keys.json) and the fault to simulate (mode).
import { createPrivateKey, createPublicKey, type JsonWebKey, sign } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { signLocally } from '../../../src/capabilities/signing/local.ts';

const [, , directory = '', order, alg = '', kid] = process.argv;
const read = (name: string) => readFileSync(join(directory, name), 'utf8');
const { keys } = JSON.parse(read('keys.json')) as { keys: (JsonWebKey & { kid: string; alg: string })[] };
const mode = read('mode');

writeFileSync(
  join(directory, 'seen.json'),
  JSON.stringify({ arguments: process.argv, environment: process.env }),
);
if (mode === 'fails') {
  process.stderr.write('the vault is sealed');
  process.exit(3);
}
if (mode === 'hangs') await new Promise((resolve) => setTimeout(resolve, 60_000));
if (mode === 'floods') process.stdout.write('x'.repeat(2 * 1024 * 1024));
else if (order === 'keys') {
  const published = keys.map(({ kid, alg, ...key }) => ({
    ...createPublicKey({ key, format: 'jwk' }).export({ format: 'jwk' }),
    kid,
    alg,
  }));
  process.stdout.write(JSON.stringify({ keys: published }));
} else {
  const jwk = keys.find((key) => key.kid === kid);
  const key = createPrivateKey({ key: jwk as JsonWebKey, format: 'jwk' });
  const data = await buffer(process.stdin);
  if (mode === 'lies')
    process.stdout.write(await signLocally(alg as 'RS256', key, Buffer.from('another text')));
  // As many devices return it.
  else if (mode === 'der') process.stdout.write(sign('sha256', data, key));
  else process.stdout.write(await signLocally(alg as 'RS256', key, data));
}
