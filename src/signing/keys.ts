// The tenant's signing keys in the store: a set for each algorithm, made when it is first asked for, and rotated.
import { createPrivateKey, type JsonWebKey } from 'node:crypto';
import { AuthError } from '../http/errors.ts';
import { type SigningKeyRecord, signingCheck } from '../records/engine.ts';
import { SIGNING_ALGS, type SigningAlg } from '../records/signing-algs.ts';
import type { Clock } from '../runtime/clock.ts';
import { type Store, UniqueKeyError, type Write } from '../store/contract.ts';
import type { SigningKey } from '../tenant/config.ts';
import { makeSigningKey } from './make-key.ts';

/** Of the keys of an algorithm: the current one, the next, and those before. */
interface KeySet {
  current: SigningKey | undefined;
  next: SigningKey | undefined;
  previous: readonly SigningKey[];
}

/**
 * Makes the tenant's keys of some algorithms when there have never been any, and looks at those there are.
 * @param algs those that are asked for: RS256, which SAML and every new application use, and what else the tenant has.
 * @throws Error when the store has lost them, or one is damaged: new ones would end every token without a word.
 */
export async function ensureSigningKeys(
  store: Store,
  clock: Clock,
  commonName: string,
  algs: Iterable<SigningAlg> = ['RS256'],
): Promise<void> {
  for (const alg of algs) {
    const { current, next, previous } = await keySet(store, alg);
    const known = await store.collection('keyChecks').get(signingCheck(alg));
    if (known !== undefined && current === undefined && next === undefined && previous.length === 0) {
      throw new Error(
        `the ${alg} keys of signingKeys.json in the store are missing: put it back from the backup; \`gatehouse keys rotate\` makes new keys, and what was issued until now is good no more`,
      );
    }
    for (const key of [current, next, ...previous]) if (key !== undefined) refuseDamaged(key);
    if (known !== undefined && current !== undefined && next !== undefined) continue;
    await makeMissing(store, alg, (state) => makeKey(state, alg, clock, commonName), known === undefined);
  }
}

/** Adds what is missing of the current and the next key; of several processes one does so. */
async function makeMissing(
  store: Store,
  alg: SigningAlg,
  make: (state: SigningKeyRecord['state']) => Promise<SigningKeyRecord>,
  isFirst: boolean,
): Promise<void> {
  const present = await keySet(store, alg);
  const states = (['current', 'next'] as const).filter((state) => present[state] === undefined);
  const made = await Promise.all(states.map(make));
  const id = signingCheck(alg);
  const value = present.current?.id ?? made[0]?.id ?? '';
  const check: Write[] = isFirst ? [{ collection: 'keyChecks', insert: { id, value } }] : [];
  try {
    await store.batch([
      ...check,
      ...made.map((key) => ({ collection: 'signingKeys', insert: key }) as const),
    ]);
  } catch (thrown) {
    // Another process has made them meanwhile.
    if (!(thrown instanceof UniqueKeyError && thrown.collection === 'keyChecks')) throw thrown;
  }
}

function refuseDamaged({ id, jwk }: SigningKey): void {
  try {
    createPrivateKey({ key: jwk as JsonWebKey, format: 'jwk' });
  } catch (cause) {
    throw new Error(
      `signingKeys.json in the store: the key ${id} is damaged: put the file back from the backup`,
      {
        cause,
      },
    );
  }
}

async function keySet(store: Store, alg: SigningAlg): Promise<KeySet> {
  const keys = store.collection('signingKeys');
  const [[current], [next], previous] = await Promise.all(
    (['current', 'next', 'previous'] as const).map(async (state) =>
      (await keys.findBy('state', state)).filter(({ jwk }) => jwk.alg === alg),
    ) as [Promise<SigningKey[]>, Promise<SigningKey[]>, Promise<SigningKey[]>],
  );
  return { current, next, previous };
}

/**
 * Makes the next key of each algorithm the current one and a new key the next. Tokens of the key that was current
 * still verify: it stays published until the rotation after.
 * @param only the algorithm whose keys are rotated; all that there are otherwise.
 * @returns the `kid` that signs from now on, with RS256 or with `only`.
 * @throws AuthError 409 when another rotation came between.
 */
export async function rotateSigningKeys(
  store: Store,
  clock: Clock,
  commonName = 'gatehouse',
  only?: SigningAlg,
): Promise<string> {
  const make = (alg: SigningAlg) => makeKey('next', alg, clock, commonName);
  const sets = await Promise.all(SIGNING_ALGS.map(async (alg) => ({ alg, ...(await keySet(store, alg)) })));
  const rotated = sets.filter(({ alg, current }) =>
    only === undefined ? alg === 'RS256' || current !== undefined : alg === only,
  );
  const turns = await Promise.all(
    rotated.map(async ({ alg, current, next, previous }) => {
      const follows = next ?? (await make(alg));
      const added = await make(alg);
      return { kid: follows.id, writes: turn({ current, next, previous }, follows, added) };
    }),
  );
  // As one: a server that signs meanwhile has the keys of before or those of after, and never none.
  await store.batch(turns.flatMap(({ writes }) => writes));
  return turns[0]?.kid ?? '';
}

/** The writes of one set's rotation. @throws AuthError 409, when they are made, for a set that has turned since. */
function turn({ current, next, previous }: KeySet, follows: SigningKey, added: SigningKeyRecord): Write[] {
  const collection = 'signingKeys';
  const to = (from: SigningKey, state: SigningKeyRecord['state']): Write => ({
    collection,
    update: from.id,
    change: (now) => {
      if (now.state === from.state) return { ...now, state };
      throw new AuthError(409, 'conflict', 'The signing keys were rotated at the same time.');
    },
  });
  return [
    ...previous.map(({ id }) => ({ collection, delete: id }) as const),
    ...(current === undefined ? [] : [to(current, 'previous')]),
    next === undefined ? { collection, insert: { ...follows, state: 'current' } } : to(next, 'current'),
    { collection, insert: added },
  ];
}

async function makeKey(
  state: SigningKeyRecord['state'],
  alg: SigningAlg,
  clock: Clock,
  commonName: string,
): Promise<SigningKeyRecord> {
  return { ...(await makeSigningKey(clock, commonName, alg)), state };
}
