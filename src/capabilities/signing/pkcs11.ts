// SIGNING=pkcs11: signs with keys in a PKCS #11 token, through OpenSC's pkcs11-tool (docs/keys.md "A PKCS #11 token").
import { createHash, createPublicKey } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import { calculateJwkThumbprint, type JWK } from 'jose';
import { isSigningAlg } from '../../records/signing-algs.ts';
import type { SignatureAlg } from './local.ts';
import type { HiddenSettings, KeyPlace } from './place.ts';
import { runProgram } from './program.ts';

interface Token extends HiddenSettings {
  /** Path of the library of the token's vendor. */
  module: string;
  /** The token's label. */
  token: string;
  pin: string;
}

/** What the tool reports about a token whose file another program is writing. */
const HALF_WRITTEN = /No slot with token named|CKR_USER_PIN_NOT_INITIALIZED/;
const MAX_TRIES = 6;
/** Pause after the first run, milliseconds; the second pause is twice as long, and so on. */
const PAUSE_MS = 10;

const hash = (name: string, data: Uint8Array) => createHash(name).update(data).digest();

/** Mechanism of each algorithm. `input` hashes the data here, where not every token can. */
const MECHANISMS: Record<SignatureAlg, { args: readonly string[]; input?: (data: Uint8Array) => Buffer }> = {
  RS1: { args: ['SHA1-RSA-PKCS'] },
  RS256: { args: ['SHA256-RSA-PKCS'] },
  RS512: { args: ['SHA512-RSA-PKCS'] },
  PS256: {
    args: ['RSA-PKCS-PSS', '--hash-algorithm', 'SHA256', '--mgf', 'MGF1-SHA256', '--salt-len', '32'],
    input: (data) => hash('sha256', data),
  },
  ES256: { args: ['ECDSA'], input: (data) => hash('sha256', data) },
  EdDSA: { args: ['EDDSA'] },
};

/**
 * Makes the key place of a token. Its keys for us have a label that begins with an algorithm: `RS256`, `ES256-2026-11`.
 */
export function hardwareToken({ module, token, pin, hidden }: Token): KeyPlace {
  const run = (args: readonly string[], signal: AbortSignal, input?: Uint8Array) =>
    retryUntilFound(() =>
      runProgram({
        program: 'pkcs11-tool',
        // In the environment, where other users of the machine cannot see it.
        args: ['--module', module, '--token-label', token, '--login', '--pin', 'env:GATEHOUSE_PIN', ...args],
        env: { GATEHOUSE_PIN: pin },
        hidden,
        signal,
        ...(input !== undefined && { input }),
      }),
    );
  /** The ids of the keys in the token, by their `kid`. */
  let ids: ReadonlyMap<string, string> = new Map();
  const keys: KeyPlace['keys'] = async (signal) => {
    const listed = (await run(['--list-objects', '--type', 'pubkey'], signal)).toString('utf8');
    const found = await Promise.all(
      objectsOf(listed).map(async ({ id, alg }) => {
        const text = await run(['--read-object', '--type', 'pubkey', '--id', id], signal);
        const jwk = publicKeyOf(text).export({ format: 'jwk' }) as JWK;
        return { id, jwk: { ...jwk, alg, kid: await calculateJwkThumbprint(jwk) } };
      }),
    );
    ids = new Map(found.map(({ id, jwk }) => [jwk.kid, id]));
    return found.map(({ jwk }) => jwk as Record<string, unknown>);
  };
  return {
    keys,
    sign: async ({ alg, kid, data }, signal) => {
      if (!ids.has(kid)) await keys(signal);
      const id = ids.get(kid);
      if (id === undefined) throw new Error(`the token ${token} has no key ${kid}`);
      const { args, input } = MECHANISMS[alg];
      return run(['--sign', '--id', id, '--mechanism', ...args], signal, input?.(data) ?? data);
    },
  };
}

/**
 * Runs the tool again while it does not find the token. Under SoftHSM, programs that run at the same time may read the
 * token's file half written, and report no token or one without a PIN. No PIN was tried then.
 * @throws Error of the last run.
 */
async function retryUntilFound(run: () => Promise<Buffer>): Promise<Buffer> {
  for (let tries = 1; ; tries++) {
    try {
      return await run();
    } catch (thrown) {
      if (tries === MAX_TRIES || !HALF_WRITTEN.test(String(thrown))) throw thrown;
      await setTimeout(tries * PAUSE_MS);
    }
  }
}

/** Parses the tool's list of objects, sorted by label, so that older keys of an algorithm come first. */
function objectsOf(listed: string): { id: string; alg: string }[] {
  const blocks = listed.split(/^(?=\S)/m).map((block) => ({
    label: /^[ \t]+label:[ \t]+(\S.*)$/m.exec(block)?.[1]?.trim() ?? '',
    id: /^[ \t]+ID:[ \t]+([0-9a-fA-F]+)$/m.exec(block)?.[1],
  }));
  return blocks
    .sort((a, b) => (a.label < b.label ? -1 : 1))
    .flatMap(({ label, id }) => {
      const [alg = ''] = label.split(/[^A-Za-z0-9]/);
      return id !== undefined && isSigningAlg(alg) ? [{ id, alg }] : [];
    });
}

/** Releases of the tool return PEM or DER, depending on the kind of key. */
function publicKeyOf(text: Buffer) {
  if (text.includes('-----BEGIN')) return createPublicKey(text);
  return createPublicKey({ key: text, format: 'der', type: 'spki' });
}
