// The tenant's signing keys: a set for each algorithm, made when it is first needed, and rotated. Keys that are kept
// outside have a record, too, because their roles are stored here.
import { createPrivateKey, createPublicKey, type JsonWebKey } from 'node:crypto';
import { AuthError } from '../../http/errors.ts';
import { SIGNING_ALGS, type SigningAlg } from '../../records/base/signing-algs.ts';
import { signingCheck } from '../../records/state/engine.ts';
import type { Clock } from '../../runtime/clock.ts';
import { type Store, UniqueKeyError, type Write } from '../../store/contract.ts';
import type { SigningKey } from '../../tenant/tenant-snapshot.ts';
import type { KeyHolder } from './holder.ts';
import {
  isExternal,
  isInPlace,
  type KeySet,
  type KeySource,
  type KeyState,
  keySet,
  keySupply,
  prepareRotation,
} from './key-set.ts';
import type { NewKey } from './make-key.ts';

/**
 * Makes the tenant's keys of some algorithms if there have never been any, and checks those that there are.
 * @param algs RS256, which SAML and every new application use, and the other algorithms of the tenant.
 * @param holder the holder of keys that are kept outside; keys are taken from there.
 * @throws Error when the store has lost keys, or one is damaged: new keys would silently invalidate every token; or
 * when the holder has none.
 */
export async function ensureSigningKeys(
  store: Store,
  clock: Clock,
  commonName: string,
  algs: Iterable<SigningAlg> = ['RS256'],
  holder?: KeyHolder,
): Promise<void> {
  const isServed = await mayBeServed(store);
  for (const alg of algs) {
    const set = await keySet(store, alg);
    const { current, next, previous } = set;
    const keyCheck = await store.collection('keyChecks').get(signingCheck(alg));
    if (keyCheck !== undefined && current === undefined && next === undefined && previous.length === 0) {
      throw new Error(
        `the ${alg} keys of signingKeys.json in the store are missing: put it back from the backup; \`gatehouse keys rotate\` makes new keys, and what was issued until now is good no more`,
      );
    }
    for (const key of [current, next, ...previous]) if (key !== undefined) refuseDamaged(key);
    if (current !== undefined && isExternal(current) && holder === undefined) {
      throw new Error(
        `the ${alg} key ${current.id} is kept outside of the store: set SIGNING to where, or make new keys here by \`gatehouse keys rotate\``,
      );
    }
    const complete = current !== undefined && isInPlace(next, holder);
    if (keyCheck !== undefined && complete) continue;
    const source = { clock, commonName, holder };
    const isFirst = keyCheck === undefined;
    if (current === undefined && isServed) await publishFirstKey(store, alg, { set, source, isFirst });
    else await makeMissingKeys(store, alg, set, { source, isFirst });
  }
}

/** Reports whether another process may be serving: then a new key must be published before it signs. */
async function mayBeServed(store: Store): Promise<boolean> {
  if (store.exclusive === true) return false;
  return (await store.collection('keyChecks').get(signingCheck('RS256'))) !== undefined;
}

/** Makes the first key of an algorithm, and makes it the current one once every process has published it. */
async function publishFirstKey(
  store: Store,
  alg: SigningAlg,
  { set, source, isFirst }: { set: KeySet; source: KeySource; isFirst: boolean },
): Promise<void> {
  if (!isInPlace(set.next, source.holder) && !(await addNextKey(store, alg, { set, source, isFirst })))
    throw new Error(`there is no ${alg} key where SIGNING says that keys are`);
  const { next, current } = await keySet(store, alg);
  if (next === undefined || current !== undefined) return;
  await waitUntilPublished(next, source.clock);
  try {
    const { writes } = await prepareRotation(source, alg, await keySet(store, alg));
    await store.batch(writes);
  } catch (thrown) {
    // Another process was first.
    if (!(thrown instanceof AuthError) && !(thrown instanceof UniqueKeyError)) throw thrown;
  }
}

/**
 * Adds a next key, in place of the present one, if any. Of several processes one does so.
 * @returns false where the holder has no further key.
 */
async function addNextKey(
  store: Store,
  alg: SigningAlg,
  { set: { current, next, previous }, source, isFirst }: { set: KeySet; source: KeySource; isFirst: boolean },
): Promise<boolean> {
  const supply = await keySupply(source, alg, [current, next, ...previous]);
  const key = await supply();
  if (key === undefined) return false;
  try {
    await store.batch([
      ...(isFirst
        ? [{ collection: 'keyChecks', insert: { id: signingCheck(alg), value: key.id } } as const]
        : []),
      ...(next === undefined ? [] : [{ collection: 'signingKeys', delete: next.id } as const]),
      { collection: 'signingKeys', insert: { ...key, state: 'next' } },
    ]);
  } catch (thrown) {
    if (!(thrown instanceof UniqueKeyError)) throw thrown;
  }
  return true;
}

/** How long until every process knows a new key and publishes it, milliseconds. */
const PUBLICATION_MS = 2_000;

/** Waits until every process publishes a key. */
async function waitUntilPublished({ createdAt }: Pick<SigningKey, 'createdAt'>, clock: Clock): Promise<void> {
  // `createdAt` is a whole second. The upper limit is for hosts whose clocks differ widely.
  const left = Math.min(PUBLICATION_MS + 1_000, (createdAt + 1) * 1000 + PUBLICATION_MS - clock());
  if (left > 0) await new Promise((resolve) => setTimeout(resolve, left));
}

/** Makes the current and the next key where they are missing. Of several processes one does so. */
async function makeMissingKeys(
  store: Store,
  alg: SigningAlg,
  { current, next, previous }: KeySet,
  { source, isFirst }: { source: KeySource; isFirst: boolean },
): Promise<void> {
  const supply = await keySupply(source, alg, [current, next, ...previous]);
  const first = current ?? (await supply());
  if (first === undefined) throw new Error(`there is no ${alg} key where SIGNING says that keys are`);
  const second = isInPlace(next, source.holder) ? undefined : await supply();
  const id = signingCheck(alg);
  const insert = (key: NewKey, state: KeyState): Write => ({
    collection: 'signingKeys',
    insert: { ...key, state },
  });
  const writes: Write[] = [
    ...(isFirst ? [{ collection: 'keyChecks', insert: { id, value: first.id } } as const] : []),
    ...(current === undefined ? [insert(first as NewKey, 'current')] : []),
    // A next key that is kept elsewhere has signed nothing yet.
    ...(second !== undefined && next !== undefined
      ? [{ collection: 'signingKeys', delete: next.id } as const]
      : []),
    ...(second === undefined ? [] : [insert(second, 'next')]),
  ];
  try {
    await store.batch(writes);
  } catch (thrown) {
    // Another process has made them meanwhile.
    if (!(thrown instanceof UniqueKeyError)) throw thrown;
  }
}

function refuseDamaged(key: SigningKey): void {
  const { id, jwk } = key;
  const read = isExternal(key) ? createPublicKey : createPrivateKey;
  try {
    read({ key: jwk as JsonWebKey, format: 'jwk' });
  } catch (cause) {
    throw new Error(
      `signingKeys.json in the store: the key ${id} is damaged: put the file back from the backup`,
      {
        cause,
      },
    );
  }
}

export interface RotatedKey {
  alg: SigningAlg;
  kid: string;
}

/**
 * Makes the next key of each algorithm the current one, and a new key the next. The former current key stays published
 * until the next rotation, so tokens that it signed still verify.
 * @param only the algorithm whose keys are rotated; by default all.
 * @param holder the holder of keys that are kept outside.
 * @returns what signs from now on: the key of each algorithm that was rotated, the first that of RS256 or `only`.
 * @throws AuthError 409 when another rotation was faster, or the holder has no further key.
 */
export async function rotateSigningKeys(
  store: Store,
  clock: Clock,
  commonName = 'gatehouse',
  only?: SigningAlg,
  holder?: KeyHolder,
): Promise<RotatedKey[]> {
  const source = { clock, commonName, holder };
  const setsNow = async () => {
    const sets = await Promise.all(SIGNING_ALGS.map(async (alg) => ({ alg, set: await keySet(store, alg) })));
    return sets.filter(({ alg, set }) =>
      only === undefined ? alg === 'RS256' || set.current !== undefined : alg === only,
    );
  };
  if (await mayBeServed(store)) {
    for (const { alg, set } of await setsNow()) {
      // By then the last rotation has reached all processes, too, so none signs with the key that this one removes.
      if (set.current !== undefined && !isInPlace(set.next, holder))
        await addNextKey(store, alg, { set, source, isFirst: false });
      const { next } = await keySet(store, alg);
      if (next !== undefined) await waitUntilPublished(next, clock);
    }
  }
  const rotated = await setsNow();
  const rotations = await Promise.all(
    rotated.map(async ({ alg, set }) => ({ alg, ...(await prepareRotation(source, alg, set)) })),
  );
  // In one batch: a server that signs meanwhile has either the old keys or the new ones, never none.
  await store.batch(rotations.flatMap(({ writes }) => writes));
  return rotations.map(({ alg, kid }) => ({ alg, kid }));
}
