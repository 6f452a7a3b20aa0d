// The signing keys of one algorithm in the store: the current one, the next one, and their rotation.
import { AuthError } from '../../http/errors.ts';
import type { SigningAlg } from '../../records/base/signing-algs.ts';
import type { SigningKeyRecord } from '../../records/state/engine.ts';
import { type Clock, epochSeconds } from '../../runtime/clock.ts';
import type { Store, Write } from '../../store/contract.ts';
import type { SigningKey } from '../../tenant/tenant-snapshot.ts';
import type { KeyHolder } from './holder.ts';
import { externalKeyRecord, makeSigningKey, type NewKey } from './make-key.ts';

export interface KeySet {
  current: SigningKey | undefined;
  next: SigningKey | undefined;
  previous: readonly SigningKey[];
}

export type KeyState = SigningKeyRecord['state'];

/**
 * Reports whether a key is kept outside: its record has no part of a private key. A record that has lost only some of
 * these is damaged.
 */
export function isExternal({ jwk }: Pick<SigningKey, 'jwk'>): boolean {
  return jwk.d === undefined && jwk.p === undefined;
}

/** What keys are made from: by this process, or taken from the holder where there is one. */
export interface KeySource {
  clock: Clock;
  commonName: string;
  holder: KeyHolder | undefined;
}

/** Reports whether a next key is kept where keys are kept now. */
export function isInPlace(next: SigningKey | undefined, holder: KeyHolder | undefined): boolean {
  return next !== undefined && isExternal(next) === (holder !== undefined);
}

/** Returns a function that returns a new key at each call; undefined where the holder has no further one. */
export async function keySupply(
  { clock, commonName, holder }: KeySource,
  alg: SigningAlg,
  present: readonly (SigningKey | undefined)[],
): Promise<() => Promise<NewKey | undefined>> {
  if (holder === undefined) return () => makeSigningKey(clock, commonName, alg);
  const knownIds = new Set(present.map((key) => key?.id));
  const keys = (await holder.keys()).filter((key) => key.alg === alg);
  // Only keys after the last one that was taken: a key that was removed here is not taken again.
  const fresh = keys.slice(keys.findLastIndex(({ kid }) => knownIds.has(kid)) + 1);
  return async () => {
    const key = fresh.shift();
    return key && externalKeyRecord(clock, commonName, key);
  };
}

export async function keySet(store: Store, alg: SigningAlg): Promise<KeySet> {
  const keys = store.collection('signingKeys');
  const of = async (state: KeyState) =>
    (await keys.findBy('state', state)).filter(({ jwk }) => jwk.alg === alg) as SigningKey[];
  const [[current], [next], previous] = await Promise.all([of('current'), of('next'), of('previous')]);
  return { current, next, previous };
}

/**
 * Prepares the rotation of a set.
 * @returns the `kid` of the new current key, and the writes.
 * @throws AuthError 409 when there is no further key; the writes throw it when the set was rotated meanwhile.
 */
export async function prepareRotation(
  source: KeySource,
  alg: SigningAlg,
  { current, next, previous }: KeySet,
): Promise<{ kid: string; writes: Write[] }> {
  const collection = 'signingKeys';
  const supply = await keySupply(source, alg, [current, next, ...previous]);
  const isNextFit = isInPlace(next, source.holder);
  const newCurrent = isNextFit ? next : await supply();
  if (newCurrent === undefined) {
    throw new AuthError(409, 'conflict', `There is no further ${alg} key: make one where the keys are kept.`);
  }
  const newNext = await supply();
  const changeState = (from: SigningKey, state: KeyState): Write => ({
    collection,
    update: from.id,
    change: (now) => {
      if (now.state === from.state)
        return { ...now, state, ...(state === 'current' && { currentSince: epochSeconds(source.clock) }) };
      throw new AuthError(409, 'conflict', 'The signing keys were rotated at the same time.');
    },
  });
  const writes: Write[] = [
    ...[...previous, ...(isNextFit || next === undefined ? [] : [next])].map(
      ({ id }) => ({ collection, delete: id }) as const,
    ),
    ...(current === undefined ? [] : [changeState(current, 'previous')]),
    isNextFit && next !== undefined
      ? changeState(next, 'current')
      : { collection, insert: { ...newCurrent, state: 'current' } },
    ...(newNext === undefined
      ? []
      : [{ collection, insert: { ...newNext, state: 'next' as const } } as const]),
  ];
  return { kid: newCurrent.id, writes };
}
