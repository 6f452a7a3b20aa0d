// Keys that are kept outside of this process, by a KMS or an HSM: they sign there, and only what they sign comes here.
import { createPublicKey, type JsonWebKey, type KeyObject } from 'node:crypto';
import PQueue from 'p-queue';
import type { Logger } from 'pino';
import { AuthError } from '../http/errors.ts';
import type { Outbound } from '../http/outbound.ts';
import { isSigningAlg, type SigningAlg } from '../records/signing-algs.ts';
import type { Clock } from '../runtime/clock.ts';
import { signingCommand } from './command.ts';
import { joseSignature } from './der.ts';
import { signingService } from './http.ts';
import { verifies } from './local.ts';
import { hardwareToken } from './pkcs11.ts';
import type { KeyPlace, SigningSettings, SignRequest } from './place.ts';

/** A key that is kept outside, as it is taken over. */
export interface HeldKey {
  kid: string;
  alg: SigningAlg;
  /** Public members alone. */
  jwk: Record<string, unknown>;
  sign(data: Uint8Array): Promise<Buffer>;
}

export interface KeyHolder {
  /** The keys that it has for our algorithms, oldest first. @throws Error with the cause. */
  keys(): Promise<HeldKey[]>;
  /** @throws AuthError 503 when it does not sign, or wrongly. */
  sign(request: SignRequest, publicKey: KeyObject): Promise<Buffer>;
  /** Whether it signed a moment ago, and has not failed since. */
  isWell(): boolean;
}

/** Milliseconds that a signature may take, unless told otherwise. */
const TIMEOUT = 5_000;
/** Signatures asked for at once, and requests that wait for theirs. */
const AT_ONCE = 8;
const MOST_WAITING = 512;
/** Milliseconds that a holder that has signed counts as well. */
const WELL = 5_000;

interface HolderDependencies {
  outbound: Pick<Outbound, 'fetch'>;
  log: Pick<Logger, 'error'>;
  clock: Clock;
  /** Milliseconds that a signature may take. */
  timeout?: number | undefined;
}

/** The holder that the settings name; undefined where keys are in the store. */
export function openHolder(settings: SigningSettings, deps: HolderDependencies): KeyHolder | undefined {
  switch (settings.kind) {
    case 'local':
      return undefined;
    case 'command':
      return keyHolder(signingCommand(settings.command), deps);
    case 'http':
      return keyHolder(signingService(settings, deps.outbound), deps);
    case 'pkcs11':
      return keyHolder(hardwareToken(settings), deps);
  }
}

/** Bounds what is asked of a place, and believes no signature that it has not verified. */
function keyHolder(place: KeyPlace, { log, clock, timeout = TIMEOUT }: HolderDependencies): KeyHolder {
  const queue = new PQueue({ concurrency: AT_ONCE });
  let wellAt: number | undefined;
  const signed = async (request: SignRequest, publicKey: KeyObject, until: number) => {
    const { alg, data } = request;
    const left = Math.floor(until - performance.now());
    if (left <= 0) throw new Error('too many signatures were before it');
    const answer = await place.sign(request, AbortSignal.timeout(left));
    const signature = alg === 'ES256' ? joseSignature(answer) : Buffer.from(answer);
    if (await verifies(alg, publicKey, { data, signature })) return signature;
    throw new Error('what came back is no signature of the key over the data');
  };
  const sign: KeyHolder['sign'] = async (request, publicKey) => {
    try {
      if (queue.size >= MOST_WAITING) throw new Error('too many signatures are waited for');
      // Waiting for a turn counts.
      const until = performance.now() + timeout;
      const signature = await queue.add(() => signed(request, publicKey, until));
      wellAt = clock();
      return signature;
    } catch (cause) {
      wellAt = undefined;
      log.error({ err: cause, kid: request.kid, alg: request.alg }, 'the keys outside did not sign');
      throw new AuthError(503, 'temporarily_unavailable', UNAVAILABLE, { cause });
    }
  };
  return {
    sign,
    isWell: () => wellAt !== undefined && clock() - wellAt < WELL,
    keys: async () =>
      (await place.keys(AbortSignal.timeout(timeout))).flatMap((given) => {
        const key = usable(given);
        if (key === undefined) return [];
        const publicKey = createPublicKey({ key: key.jwk as JsonWebKey, format: 'jwk' });
        return [{ ...key, sign: (data) => sign({ alg: key.alg, kid: key.kid, data }, publicKey) }];
      }),
  };
}

const UNAVAILABLE = 'Nothing can be signed at the moment. Try again later.';

/** What a `kid` may be. */
const KID = /^[\w.:/+=@-]{1,255}$/;

/**
 * A key for an algorithm of ours, without members that are not public; others that a place has are not our business.
 * @throws Error for one that says it is for an algorithm of ours, and is not.
 */
function usable(given: Record<string, unknown>): Omit<HeldKey, 'sign'> | undefined {
  const { alg, kid } = given;
  if (!isSigningAlg(alg)) return undefined;
  if (typeof kid !== 'string' || !KID.test(kid))
    throw new Error(`a key for ${alg} has no kid, or one that is no name`);
  let key: KeyObject;
  try {
    const { kty, n, e, crv, x, y } = given;
    key = createPublicKey({ key: { kty, n, e, crv, x, y } as JsonWebKey, format: 'jwk' });
  } catch (cause) {
    throw new Error(`the key ${kid} is no public key`, { cause });
  }
  if (!isFor(alg, key)) throw new Error(`the key ${kid} is not for ${alg}`);
  return { kid, alg, jwk: key.export({ format: 'jwk' }) as Record<string, unknown> };
}

function isFor(
  alg: SigningAlg,
  { asymmetricKeyType: type, asymmetricKeyDetails: details }: KeyObject,
): boolean {
  if (alg === 'EdDSA') return type === 'ed25519';
  if (alg === 'ES256') return type === 'ec' && details?.namedCurve === 'prime256v1';
  return type === 'rsa' && (details?.modulusLength ?? 0) >= 2048;
}
