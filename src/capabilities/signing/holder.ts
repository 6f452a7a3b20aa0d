// Signing keys that are kept outside of this process, in a KMS or an HSM: it signs, and no private key comes here.
import { createPublicKey, type JsonWebKey, type KeyObject } from 'node:crypto';
import PQueue from 'p-queue';
import type { Logger } from 'pino';
import { AuthError } from '../../http/errors.ts';
import { isSigningAlg, type SigningAlg } from '../../records/base/signing-algs.ts';
import type { Clock } from '../../runtime/clock.ts';
import { verifySignature } from './local.ts';
import type { KeyPlace, PlaceNeeds, SignRequest } from './place.ts';
import { placeOf, type SigningSettings } from './signing-settings.ts';

// Converts ECDSA signatures from DER (a SEQUENCE of two INTEGERs, RFC 3279 §2.2.3), which most devices return, to the
// form of JWS.

/** Length of each of the two numbers for P-256, bytes (RFC 7518 §3.4). */
const INTEGER_SIZE = 32;

/**
 * Returns the signature in the form of JWS.
 * @param signature a signature in either form.
 * @throws Error for anything else.
 */
function joseSignature(signature: Uint8Array): Buffer {
  const bytes = Buffer.from(signature);
  if (bytes.length === 2 * INTEGER_SIZE) return bytes;
  if (bytes[0] !== 0x30 || bytes[1] !== bytes.length - 2)
    throw new Error('the ECDSA signature has no known form');
  const first = integerAt(bytes, 2);
  const second = integerAt(bytes, first.end);
  if (second.end !== bytes.length) throw new Error('the ECDSA signature has no known form');
  return Buffer.concat([first.number, second.number]);
}

function integerAt(bytes: Buffer, at: number): { number: Buffer; end: number } {
  const length = bytes[at + 1] ?? 0;
  const end = at + 2 + length;
  const digits = bytes.subarray(at + 2, end);
  // A leading zero keeps the number positive.
  const number = digits.subarray(digits.findIndex((byte) => byte !== 0));
  if (bytes[at] !== 0x02 || length === 0 || end > bytes.length || number.length > INTEGER_SIZE) {
    throw new Error('the ECDSA signature has no known form');
  }
  return { number: Buffer.concat([Buffer.alloc(INTEGER_SIZE - number.length), number]), end };
}

export interface ExternalKey {
  kid: string;
  alg: SigningAlg;
  /** Public members only. */
  jwk: Record<string, unknown>;
  sign(data: Uint8Array): Promise<Buffer>;
}

export interface KeyHolder {
  /** Returns the keys for our algorithms, oldest first. @throws Error with the cause. */
  keys(): Promise<ExternalKey[]>;
  /** Signs, and verifies the signature. @throws AuthError 503 when there is none, or a wrong one. */
  sign(request: SignRequest, publicKey: KeyObject): Promise<Buffer>;
  /** Whether it has signed recently, and has not failed since. */
  isHealthy(): boolean;
}

/** Default time limit of a signature, milliseconds. */
const DEFAULT_TIMEOUT_MS = 5_000;
/** How many signatures are requested at once, and how many requests wait. */
const CONCURRENCY = 8;
const MAX_QUEUED = 512;
/** How long after a signature the holder counts as working, milliseconds. */
const HEALTHY_MS = 5_000;

interface HolderDependencies {
  log: Pick<Logger, 'error'>;
  clock: Clock;
  /** Time limit of a signature, milliseconds. */
  timeout?: number | undefined;
}

/** Opens the key holder that the settings name; undefined where keys are in the store. */
export function openHolder(
  settings: SigningSettings['signing'],
  deps: HolderDependencies & PlaceNeeds,
): KeyHolder | undefined {
  const place = placeOf(settings).open(settings.variables, deps);
  return place && keyHolder(place, deps);
}

/** Makes a key holder of a place: limits concurrency and time, and verifies every signature. */
function keyHolder(
  place: KeyPlace,
  { log, clock, timeout = DEFAULT_TIMEOUT_MS }: HolderDependencies,
): KeyHolder {
  const queue = new PQueue({ concurrency: CONCURRENCY });
  let lastSuccessAt: number | undefined;
  const signAndVerify = async (request: SignRequest, publicKey: KeyObject, until: number) => {
    const { alg, data } = request;
    const left = Math.floor(until - performance.now());
    if (left <= 0) throw new Error('too many signatures were before it');
    const answer = await place.sign(request, AbortSignal.timeout(left));
    const signature = alg === 'ES256' ? joseSignature(answer) : Buffer.from(answer);
    if (await verifySignature(alg, publicKey, { data, signature })) return signature;
    throw new Error('what came back is no signature of the key over the data');
  };
  const sign: KeyHolder['sign'] = async (request, publicKey) => {
    try {
      if (queue.size >= MAX_QUEUED) throw new Error('too many signatures are waited for');
      // The wait in the queue counts.
      const until = performance.now() + timeout;
      const signature = await queue.add(() => signAndVerify(request, publicKey, until));
      lastSuccessAt = clock();
      return signature;
    } catch (cause) {
      lastSuccessAt = undefined;
      log.error({ err: cause, kid: request.kid, alg: request.alg }, 'the keys outside did not sign');
      throw new AuthError(503, 'temporarily_unavailable', UNAVAILABLE, { cause, reported: 'logged' });
    }
  };
  return {
    sign,
    isHealthy: () => lastSuccessAt !== undefined && clock() - lastSuccessAt < HEALTHY_MS,
    keys: async () =>
      (await place.keys(AbortSignal.timeout(timeout))).flatMap((jwk) => {
        const key = parseKey(jwk);
        if (key === undefined) return [];
        const publicKey = createPublicKey({ key: key.jwk as JsonWebKey, format: 'jwk' });
        return [{ ...key, sign: (data) => sign({ alg: key.alg, kid: key.kid, data }, publicKey) }];
      }),
  };
}

const UNAVAILABLE = 'Nothing can be signed at the moment. Try again later.';

const KID = /^[\w.:/+=@-]{1,255}$/;

/**
 * Returns a key without members that are not public; undefined for a key whose algorithm is not one of ours.
 * @throws Error for a key that is not fit for its algorithm.
 */
function parseKey(jwk: Record<string, unknown>): Omit<ExternalKey, 'sign'> | undefined {
  const { alg, kid } = jwk;
  if (!isSigningAlg(alg)) return undefined;
  if (typeof kid !== 'string' || !KID.test(kid))
    throw new Error(`a key for ${alg} has no kid, or one that is no name`);
  let key: KeyObject;
  try {
    const { kty, n, e, crv, x, y } = jwk;
    key = createPublicKey({ key: { kty, n, e, crv, x, y } as JsonWebKey, format: 'jwk' });
  } catch (cause) {
    throw new Error(`the key ${kid} is no public key`, { cause });
  }
  if (!fitsAlgorithm(alg, key)) throw new Error(`the key ${kid} is not for ${alg}`);
  return { kid, alg, jwk: key.export({ format: 'jwk' }) as Record<string, unknown> };
}

function fitsAlgorithm(
  alg: SigningAlg,
  { asymmetricKeyType: type, asymmetricKeyDetails: details }: KeyObject,
): boolean {
  if (alg === 'EdDSA') return type === 'ed25519';
  if (alg === 'ES256') return type === 'ec' && details?.namedCurve === 'prime256v1';
  return type === 'rsa' && (details?.modulusLength ?? 0) >= 2048;
}
