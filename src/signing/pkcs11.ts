// SIGNING=pkcs11: keys in a token of PKCS #11, by OpenSC's pkcs11-tool (docs/keys.md "A PKCS #11 token").
import { createHash, createPublicKey } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import { calculateJwkThumbprint, type JWK } from 'jose';
import { isSigningAlg } from '../records/signing-algs.ts';
import type { SignatureAlg } from './local.ts';
import type { KeyPlace } from './place.ts';
import { runProgram } from './program.ts';

interface Token {
  /** The library of the token's maker. */
  module: string;
  /** Its label. */
  token: string;
  pin: string;
}

/** What the tool says of a token that another program is writing. */
const HALF_WRITTEN = /No slot with token named|CKR_USER_PIN_NOT_INITIALIZED/;
const MOST_TRIES = 6;
/** Milliseconds, after the first run; after the next ones twice that, and so on. */
const PAUSE = 10;

const hash = (name: string, data: Uint8Array) => createHash(name).update(data).digest();

/** What the token is asked for. It hashes itself only where every token can. */
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

/** A key is one of ours when its label begins with an algorithm: `RS256`, `ES256-2026-11`. */
export function hardwareToken({ module, token, pin }: Token): KeyPlace {
  const run = (args: readonly string[], signal: AbortSignal, input?: Uint8Array) =>
    whenFound(() =>
      runProgram({
        program: 'pkcs11-tool',
        // By the environment, where other users of the machine do not see it.
        args: ['--module', module, '--token-label', token, '--login', '--pin', 'env:GATEHOUSE_PIN', ...args],
        env: { GATEHOUSE_PIN: pin },
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
 * Runs the tool again while it does not find the token: under SoftHSM, programs that run at the same time now and then read
 * the token's file half written, and take it for none or for one without a PIN. No PIN was tried then.
 * @throws Error of the last run.
 */
async function whenFound(run: () => Promise<Buffer>): Promise<Buffer> {
  for (let tries = 1; ; tries++) {
    try {
      return await run();
    } catch (thrown) {
      if (tries === MOST_TRIES || !HALF_WRITTEN.test(String(thrown))) throw thrown;
      await setTimeout(tries * PAUSE);
    }
  }
}

/** What the tool lists, in the order of the labels: of older keys those of the same algorithm come first. */
function objectsOf(listed: string): { id: string; alg: string }[] {
  const blocks = listed.split(/^(?=\S)/m).map((block) => ({
    label: /^\s+label:\s+(.+)$/m.exec(block)?.[1]?.trim() ?? '',
    id: /^\s+ID:\s+([0-9a-fA-F]+)$/m.exec(block)?.[1],
  }));
  return blocks
    .sort((a, b) => (a.label < b.label ? -1 : 1))
    .flatMap(({ label, id }) => {
      const [alg = ''] = label.split(/[^A-Za-z0-9]/);
      return id !== undefined && isSigningAlg(alg) ? [{ id, alg }] : [];
    });
}

/** Releases of the tool give PEM or DER, by the kind of key. */
function publicKeyOf(text: Buffer) {
  if (text.includes('-----BEGIN')) return createPublicKey(text);
  return createPublicKey({ key: text, format: 'der', type: 'spki' });
}
