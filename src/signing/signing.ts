// Everything that the tenant signs is signed here: tokens, and the messages of SAML.
import { createPrivateKey, type JsonWebKey, type KeyObject } from 'node:crypto';
import type { SigningAlg } from '../records/signing-algs.ts';
import type { Clock } from '../runtime/clock.ts';
import type { Store } from '../store/contract.ts';
import { type Config, derived, keysFor, type SigningKey } from '../tenant/config.ts';
import { ensureSigningKeys } from './keys.ts';
import { type SignatureAlg, signLocally } from './local.ts';

/** Signs by a key of the tenant. @param kid the key's. @throws Error when there is no such key, or it is not for `alg`. */
export type Sign = (alg: SignatureAlg, kid: string, data: Uint8Array) => Promise<Buffer>;

export interface Signing {
  sign: Sign;
  /** Makes the keys that the configuration asks for and the store has never had; nothing to wait for where it has. */
  ensure(): Promise<void> | undefined;
  /** The key of an algorithm that signs now; made where it is asked for the first time. */
  current(alg: SigningAlg): Promise<SigningKey>;
}

interface SigningDependencies {
  store: Store;
  config: Config;
  clock: Clock;
  /** What the keys' certificates are of: our host name. */
  commonName: string;
}

/** The signing of a tenant. */
export function createSigning({ store, config, clock, commonName }: SigningDependencies): Signing {
  const keyObjects = derived(config.signingKeys, () => new Map<string, KeyObject>());
  const keyObject = (kid: string, alg: SignatureAlg): KeyObject => {
    const key = config.signingKeys().find(({ id }) => id === kid);
    if (key === undefined) throw new Error(`there is no signing key ${kid}`);
    if (!isKeyFor(key, alg)) throw new Error(`the signing key ${kid} is not for ${alg}`);
    const made = keyObjects().get(kid) ?? createPrivateKey({ key: key.jwk as JsonWebKey, format: 'jwk' });
    keyObjects().set(kid, made);
    return made;
  };
  const isMissing = (alg: SigningAlg) => keysFor(config.signingKeys(), alg)[0]?.state !== 'current';
  let turn = Promise.resolve();
  // One after another: of many requests that find keys missing the first one makes them.
  const make = (algs: readonly SigningAlg[]): Promise<void> => {
    const mine = turn.then(async () => {
      if (!algs.some(isMissing)) return;
      await ensureSigningKeys(store, clock, commonName, algs.filter(isMissing));
      await config.refresh();
    });
    turn = mine.catch(() => undefined);
    return mine;
  };
  return {
    sign: async (alg, kid, data) => signLocally(alg, keyObject(kid, alg), data),
    ensure: () => {
      const algs = [...config.signingAlgs()].filter(isMissing);
      return algs.length === 0 ? undefined : make(algs);
    },
    current: async (alg) => {
      if (isMissing(alg)) await make([alg]);
      const [current] = keysFor(config.signingKeys(), alg);
      if (current === undefined) throw new Error(`there is no ${alg} key`);
      return current;
    },
  };
}

/** SAML has signatures of RSA with any hash by the one key whose certificate is in the metadata. */
function isKeyFor({ jwk }: SigningKey, alg: SignatureAlg): boolean {
  return jwk.alg === alg || (jwk.alg === 'RS256' && (alg === 'RS512' || alg === 'RS1'));
}
