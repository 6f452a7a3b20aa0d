#!/usr/bin/env node
// Signs with keys in a PKCS #11 token, through OpenSC's pkcs11-tool: an example of SIGNING=command (docs/do/keys.md "A
// PKCS #11 token"). PKCS11_MODULE is the path of the vendor's library, PKCS11_TOKEN the token's label, PKCS11_PIN its
// user PIN. The keys for Gatehouse have a label that begins with an algorithm: `RS256`, `ES256-2026-11`.
import { spawn } from 'node:child_process';
import { createHash, createPublicKey } from 'node:crypto';
import { buffer } from 'node:stream/consumers';
import { setTimeout } from 'node:timers/promises';

const { PKCS11_MODULE, PKCS11_TOKEN } = process.env;

/** What the tool reports about a token whose file another program is writing. */
const HALF_WRITTEN = /No slot with token named|CKR_USER_PIN_NOT_INITIALIZED/;
const MAX_TRIES = 6;
/** Pause after the first run, milliseconds; the second pause is twice as long, and so on. */
const PAUSE_MS = 10;

/** The mechanism of each algorithm. `hash` is applied to the data here, where not every token can. */
const MECHANISMS = {
  RS1: { args: ['SHA1-RSA-PKCS'] },
  RS256: { args: ['SHA256-RSA-PKCS'] },
  RS512: { args: ['SHA512-RSA-PKCS'] },
  PS256: {
    args: ['RSA-PKCS-PSS', '--hash-algorithm', 'SHA256', '--mgf', 'MGF1-SHA256', '--salt-len', '32'],
    hash: 'sha256',
  },
  ES256: { args: ['ECDSA'], hash: 'sha256' },
  EdDSA: { args: ['EDDSA'] },
};

/** Runs the tool once. @returns what it wrote. @throws Error with its own message. */
async function runOnce(args, input) {
  // The PIN is in the environment, where other users of the machine cannot see it.
  const login = ['--login', '--pin', 'env:PKCS11_PIN'];
  const tool = spawn('pkcs11-tool', [
    '--module',
    PKCS11_MODULE,
    '--token-label',
    PKCS11_TOKEN,
    ...login,
    ...args,
  ]);
  const ended = new Promise((resolve, reject) => tool.once('error', reject).once('close', resolve));
  // A tool that ended before it read its input is reported by its exit.
  tool.stdin.on('error', () => undefined).end(input);
  const [code, output, errors] = await Promise.all([ended, buffer(tool.stdout), buffer(tool.stderr)]);
  if (code !== 0) throw new Error(`pkcs11-tool: ${errors.toString('utf8').trim()}`);
  return output;
}

/**
 * Runs the tool, again where it does not find the token: under SoftHSM, programs that run at the same time may read the
 * token's file half written, and report no token or one without a PIN. No PIN was tried then.
 */
async function run(args, input) {
  for (let tries = 1; ; tries++) {
    try {
      return await runOnce(args, input);
    } catch (thrown) {
      if (tries === MAX_TRIES || !HALF_WRITTEN.test(String(thrown))) throw thrown;
      await setTimeout(tries * PAUSE_MS);
    }
  }
}

/** Returns the public keys, sorted by label, so that older keys of an algorithm come first. */
async function publicKeys() {
  const listed = (await run(['--list-objects', '--type', 'pubkey'])).toString('utf8');
  const objects = listed.split(/^(?=\S)/m).flatMap((block) => {
    const label = /^[ \t]+label:[ \t]+(\S.*)$/m.exec(block)?.[1]?.trim() ?? '';
    const id = /^[ \t]+ID:[ \t]+([0-9a-fA-F]+)$/m.exec(block)?.[1];
    const [alg] = label.split(/[^A-Za-z0-9]/);
    // RS1 is a use of the RS256 key.
    return id !== undefined && alg !== 'RS1' && Object.hasOwn(MECHANISMS, alg) ? [{ label, id, alg }] : [];
  });
  const keys = [];
  for (const { id, alg } of objects.sort((a, b) => (a.label < b.label ? -1 : 1))) {
    const key = publicKeyOf(await run(['--read-object', '--type', 'pubkey', '--id', id]));
    // A key keeps its id in the token, so that no list is needed to sign. The thumbprint (RFC 7638) keeps apart what
    // two tokens call the same.
    keys.push({ ...key, alg, kid: `${id}-${thumbprint(key)}` });
  }
  return keys;
}

/** Releases of the tool return PEM or DER, depending on the kind of key. */
function publicKeyOf(text) {
  const isPem = text.includes('-----BEGIN');
  const key = createPublicKey(isPem ? text : { key: text, format: 'der', type: 'spki' });
  return key.export({ format: 'jwk' });
}

function thumbprint({ crv, e, kty, n, x, y }) {
  return createHash('sha256').update(JSON.stringify({ crv, e, kty, n, x, y })).digest('base64url');
}

async function sign(alg, kid, data) {
  const { args, hash } = MECHANISMS[alg];
  const [id] = kid.split('-');
  const input = hash === undefined ? data : createHash(hash).update(data).digest();
  return run(['--sign', '--id', id, '--mechanism', ...args], input);
}

const [command, alg, kid] = process.argv.slice(2);
try {
  if (command === 'keys') process.stdout.write(JSON.stringify({ keys: await publicKeys() }));
  else process.stdout.write(await sign(alg, kid, await buffer(process.stdin)));
} catch (thrown) {
  process.stderr.write(`${thrown.message}\n`);
  process.exitCode = 1;
}
