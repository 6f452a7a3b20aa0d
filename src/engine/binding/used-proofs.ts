// Records which DPoP proofs were used (RFC 9449 §11.1). A process that serves alone records them in memory, so that
// no request waits for a disk; several processes record them in the store, before the answer. A crash loses the
// memory. Therefore the store has a time, written in advance, up to which uses may have been recorded in memory:
// after a crash a proof that was made before it, without a nonce, is answered with a nonce (§8), and nonces from
// before the crash are not valid any more (`steadyNonces`).
// docs/understand/decisions/clients-keys.md#if-one-process-serves-used-dpop-proofs-are-stored-in-its-memory

import { createHmac } from 'node:crypto';
import { type Clock, epochSeconds, SET_BACK } from '../../runtime/clock.ts';
import type { Store } from '../../store/contract.ts';
import { artifactKey } from '../base/artifact-keys.ts';
import type { Nonces } from '../base/internals.ts';
import { REPLAY_MODEL, recordUse, replayKey } from '../base/request-replay.ts';

export interface UsedProofs {
  /** Whether a proof is accepted only with a nonce. @param iat the time in the proof, epoch seconds. */
  needsNonce(iat: number): boolean;
  /** Records a use. @returns true for the first; of simultaneous uses exactly one is the first. */
  recordUse(clientId: string, jti: string): Promise<boolean>;
  /** Stores what is in memory for the next process. Called at the stop, when no more requests come. */
  storeUsedProofs(): Promise<void>;
}

// docs/understand/decisions/clients-keys.md#a-proof-with-a-wrong-iat-gets-use_dpop_nonce
/** How far ahead a proof may be dated, seconds (FAPI 2.0 Security Profile §5.3.2.1: not more than 60). */
const MAX_AHEAD_SECONDS = 60;

/** How long the engine accepts a proof without a nonce, seconds from its `iat`. */
const PROOF_SECONDS = 300;

/**
 * How long a use is remembered, seconds: as long as a proof is valid, and a minute more in case the wall clock is
 * behind. Nonces are valid for less.
 */
const REMEMBERED_SECONDS = MAX_AHEAD_SECONDS + PROOF_SECONDS + 60;

/** The most uses that are kept in memory, about 20 MB. Further ones are stored. */
const MAX_IN_MEMORY = 250_000;

/** How far in advance the time is written up to which uses may be recorded in memory, seconds. */
const WRITTEN_AHEAD_SECONDS = 10;

/** The most that are stored at the stop. With more, nothing is stored, and the next process starts as after a crash. */
const MAX_STORED_AT_STOP = 20_000;

const UNTIL_KEY = artifactKey(REPLAY_MODEL, 'noted-until');

interface UsedProofsDependencies {
  store: Store;
  /** The clock for durations. */
  clock: Clock;
  wallClock: Clock;
  /** The most uses that are kept in memory; {@link MAX_IN_MEMORY} by default. */
  most?: number;
}

export async function usedProofs(deps: UsedProofsDependencies): Promise<UsedProofs> {
  const { store, clock, wallClock } = deps;
  const stored = await store.collection('artifacts').get(UNTIL_KEY);
  /** The time up to which a crash may have lost uses. */
  const lostUntil = stored === undefined ? Number.NEGATIVE_INFINITY : Number(stored.payload.until);
  const now = () => epochSeconds(clock);
  const needsNonce = (iat: number) =>
    iat > epochSeconds(wallClock) + MAX_AHEAD_SECONDS ||
    iat <= lostUntil + MAX_AHEAD_SECONDS ||
    // The wall clock was set back, so the use may be forgotten already.
    iat < now() - REMEMBERED_SECONDS + MAX_AHEAD_SECONDS;
  const inStore = (clientId: string, jti: string) =>
    recordUse(store, [clientId, jti], now() + MAX_AHEAD_SECONDS + PROOF_SECONDS);
  if (store.exclusive !== true)
    return { needsNonce, recordUse: inStore, storeUsedProofs: async () => undefined };
  return { needsNonce, ...inMemory(deps, { now, lostUntil, inStore }) };
}

function inMemory(
  { store, most = MAX_IN_MEMORY }: UsedProofsDependencies,
  { now, lostUntil, inStore }: { now(): number; lostUntil: number; inStore: UsedProofs['recordUse'] },
): Pick<UsedProofs, 'recordUse' | 'storeUsedProofs'> {
  const recent = recentKeys(REMEMBERED_SECONDS);
  const artifacts = store.collection('artifacts');
  const beingStored = new Set<string>();
  // An earlier process may have stored some uses.
  let lookUntil = now() + REMEMBERED_SECONDS + SET_BACK;
  let writtenUntil = Number.NEGATIVE_INFINITY;
  let extending: Promise<void> | undefined;
  let isStopping = false;

  const writeUntil = async (until: number): Promise<void> => {
    const expiresAt = until + REMEMBERED_SECONDS + SET_BACK;
    await artifacts.put({ id: UNTIL_KEY, model: REPLAY_MODEL, payload: { until }, expiresAt });
    writtenUntil = until;
  };
  const extendUntil = (at: number): Promise<void> => {
    extending ??= writeUntil(Math.max(at + WRITTEN_AHEAD_SECONDS, lostUntil)).finally(() => {
      extending = undefined;
    });
    return extending;
  };
  const firstInStore = async (key: string, clientId: string, jti: string): Promise<boolean> => {
    lookUntil = Math.max(lookUntil, now() + REMEMBERED_SECONDS);
    beingStored.add(key);
    try {
      return await inStore(clientId, jti);
    } finally {
      beingStored.delete(key);
    }
  };

  return {
    recordUse: async (clientId, jti) => {
      const at = now();
      const key = replayKey([clientId, jti]);
      // No await between this check and the record of the use, so that of simultaneous uses only one passes.
      if (recent.has(key, at) || beingStored.has(key)) return false;
      if (isStopping || recent.size() >= most) return firstInStore(key, clientId, jti);
      recent.add(key, at);
      while (at >= writtenUntil) await extendUntil(at);
      return at >= lookUntil || (await artifacts.get(artifactKey(REPLAY_MODEL, key))) === undefined;
    },
    storeUsedProofs: async () => {
      if (recent.size() > MAX_STORED_AT_STOP) return;
      // A request that still arrives is recorded in the store.
      isStopping = true;
      const expiresAt = now() + REMEMBERED_SECONDS + SET_BACK;
      const records = [...recent.keys()].map((key) => ({
        id: artifactKey(REPLAY_MODEL, key),
        model: REPLAY_MODEL,
        payload: {},
        expiresAt,
      }));
      if (records.length > 0)
        await store.batch(records.map((put) => ({ collection: 'artifacts', put }) as const));
      // Uses that an earlier crash has lost stay lost for as long as their proofs are valid.
      if (lostUntil + MAX_AHEAD_SECONDS + PROOF_SECONDS > now()) await writeUntil(lostUntil);
      else await artifacts.delete(UNTIL_KEY);
    },
  };
}

/** How long the same nonce is given out, seconds. It is valid for two further such times. */
const NONCE_SECONDS = 60;

/**
 * Makes the nonces of one process (RFC 9449 §8). They depend on a clock that never goes back, so that a forgotten
 * use does not become valid again.
 * @param secret 32 bytes that no other process has.
 * @param clock one that never goes back.
 */
export function steadyNonces(secret: Buffer, clock: Clock): Nonces {
  const ofStep = (step: number) => createHmac('sha256', secret).update(String(step)).digest('base64url');
  let cached = { step: Number.NaN, nonces: [''] };
  const nonces = (): readonly string[] => {
    const step = Math.floor(epochSeconds(clock) / NONCE_SECONDS);
    if (step !== cached.step) cached = { step, nonces: [step, step - 1, step - 2].map(ofStep) };
    return cached.nonces;
  };
  return {
    nextChallenge: () => nonces()[0] ?? '',
    // No constant-time comparison, because a nonce is not secret: anybody can ask for it.
    checkChallenge: (nonce) => nonces().includes(nonce),
  };
}

// Remembers keys for a limited time. They are forgotten in groups, which is cheaper than one by one.

interface RecentKeys {
  /** @param now seconds, never less than before. */
  has(key: string, now: number): boolean;
  add(key: string, now: number): void;
  size(): number;
  keys(): Iterable<string>;
}

/** Keys added within this time form a group and are forgotten together, seconds. */
const GROUP_SECONDS = 60;

/** Makes a memory of keys. @param seconds how long each key is remembered at least; at most a minute longer. */
function recentKeys(seconds: number): RecentKeys {
  /** The keys by the time when their group began, the oldest first. */
  const sets = new Map<number, Set<string>>();
  const forget = (now: number) => {
    for (const began of sets.keys()) {
      if (began + GROUP_SECONDS + seconds > now) return;
      sets.delete(began);
    }
  };
  return {
    has: (key, now) => {
      forget(now);
      for (const keys of sets.values()) if (keys.has(key)) return true;
      return false;
    },
    add: (key, now) => {
      const began = now - (now % GROUP_SECONDS);
      const keys = sets.get(began);
      if (keys === undefined) sets.set(began, new Set([key]));
      else keys.add(key);
    },
    size: () => [...sets.values()].reduce((sum, keys) => sum + keys.size, 0),
    *keys() {
      for (const keys of sets.values()) yield* keys;
    },
  };
}
