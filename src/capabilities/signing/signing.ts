// Signs everything for the tenant: tokens and SAML messages.
import { createPrivateKey, createPublicKey, type JsonWebKey, type KeyObject } from 'node:crypto';
import type { SigningAlg } from '../../records/base/signing-algs.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Store } from '../../store/contract.ts';
import { type Config, derived } from '../../tenant/config.ts';
import { keysFor, type SigningKey } from '../../tenant/tenant-snapshot.ts';
import type { KeyHolder } from './holder.ts';
import { isExternal } from './key-set.ts';
import { type SignatureAlg, signLocally } from './local.ts';
import { ensureSigningKeys } from './signing-key-list.ts';

/**
 * Signs with a key of the tenant.
 * @param kid id of the key.
 * @throws AuthError 503 when the key is kept outside and does not sign; Error when there is no such key, or it is not
 * for `alg`.
 */
export type Sign = (alg: SignatureAlg, kid: string, data: Uint8Array) => Promise<Buffer>;

export interface Signing {
  sign: Sign;
  /**
   * Makes the keys that the configuration needs and the store has never had.
   * @returns undefined where none is missing.
   */
  ensure(): Promise<void> | undefined;
  /** Returns the current key of an algorithm; makes it at the first call. */
  current(alg: SigningAlg): Promise<SigningKey>;
  // docs/understand/decisions/clients-keys.md#if-a-signature-cannot-be-made-the-answer-is-503
  /**
   * Has the keys that are kept outside sign something, unless they have recently. Callers do this before they consume
   * what a request may use once.
   * @throws AuthError 503 when they do not sign.
   */
  ready(): Promise<void> | undefined;
  /** Makes the missing keys at the start, and has each key that is kept outside sign. @throws Error with the cause. */
  start(): Promise<void>;
}

interface SigningDependencies {
  store: Store;
  config: Config;
  clock: Clock;
  /** The common name of the keys' certificates: our host name. */
  commonName: string;
  /** Undefined where all keys are in the store. */
  holder?: KeyHolder | undefined;
}

const TRIAL = Buffer.from('a trial');

export function createSigning(deps: SigningDependencies): Signing {
  const { config, holder } = deps;
  const sign = signer(deps);
  const { isMissing, make } = maker(deps);
  // The configuration and its keys are read together, so `missing` changes with them.
  const missing = derived(config.signingAlgs, (algs) => [...algs].filter(isMissing));
  const externalKeys = () =>
    config.signingKeys().filter((key) => key.state !== 'previous' && isExternal(key));
  const trySigning = ({ id, jwk }: SigningKey) => sign(jwk.alg as SigningAlg, id, TRIAL);
  let trial: Promise<void> | undefined;
  return {
    sign,
    ensure: () => (missing().length === 0 ? undefined : make(missing())),
    current: async (alg) => {
      if (isMissing(alg)) await make([alg]);
      const [current] = keysFor(config.signingKeys(), alg);
      if (current === undefined) throw new Error(`there is no ${alg} key`);
      return current;
    },
    ready: () => {
      const [key] = holder === undefined || holder.isHealthy() ? [] : externalKeys();
      if (key === undefined) return undefined;
      // Concurrent requests share one trial.
      trial ??= trySigning(key)
        .then(() => undefined)
        .finally(() => {
          trial = undefined;
        });
      return trial;
    },
    start: async () => {
      await config.refresh();
      await ensureSigningKeys(deps.store, deps.clock, deps.commonName, config.signingAlgs(), holder);
      await config.refresh();
      await Promise.all(externalKeys().map((key) => trySigning(key).catch(refuseStart(key))));
    },
  };
}

function refuseStart({ id, jwk }: SigningKey) {
  return (thrown: unknown): never => {
    const cause = thrown instanceof Error && thrown.cause !== undefined ? thrown.cause : thrown;
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new Error(`SIGNING: the ${jwk.alg} key ${id} does not sign: ${reason}`, { cause });
  };
}

function signer({ config, holder }: SigningDependencies): Sign {
  const keyObjects = derived(config.signingKeys, () => new Map<string, KeyObject>());
  const keyObject = (
    { id, jwk }: SigningKey,
    create: (input: { key: JsonWebKey; format: 'jwk' }) => KeyObject,
  ) => {
    const created = keyObjects().get(id) ?? create({ key: jwk as JsonWebKey, format: 'jwk' });
    keyObjects().set(id, created);
    return created;
  };
  return async (alg, kid, data) => {
    const key = config.signingKeys().find(({ id }) => id === kid);
    if (key === undefined) throw new Error(`there is no signing key ${kid}`);
    if (!isKeyFor(key, alg)) throw new Error(`the signing key ${kid} is not for ${alg}`);
    if (!isExternal(key)) return signLocally(alg, keyObject(key, createPrivateKey), data);
    if (holder === undefined)
      throw new Error(`the signing key ${kid} is kept outside, and SIGNING does not say where`);
    return holder.sign({ alg, kid, data }, keyObject(key, createPublicKey));
  };
}

function maker({ store, config, clock, commonName, holder }: SigningDependencies) {
  const isMissing = (alg: SigningAlg) => keysFor(config.signingKeys(), alg)[0]?.state !== 'current';
  let lastRun = Promise.resolve();
  // One after another: of several requests that find keys missing the first one makes them.
  const make = (algs: readonly SigningAlg[]): Promise<void> => {
    const run = lastRun.then(async () => {
      if (!algs.some(isMissing)) return;
      await ensureSigningKeys(store, clock, commonName, algs.filter(isMissing), holder);
      await config.refresh();
    });
    lastRun = run.catch(() => undefined);
    return run;
  };
  return { isMissing, make };
}

/**
 * Reports whether a key may be used with an algorithm. SAML signs with any hash by the one RSA key whose certificate is
 * in the metadata.
 */
function isKeyFor({ jwk }: SigningKey, alg: SignatureAlg): boolean {
  return jwk.alg === alg || (jwk.alg === 'RS256' && (alg === 'RS512' || alg === 'RS1'));
}
