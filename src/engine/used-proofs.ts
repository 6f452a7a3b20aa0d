// Which DPoP proofs were used (RFC 9449 §11.1). Where this process alone serves they are noted in memory, so that no request waits
// for a disk; with others beside it in the store, before the answer. After a crash the memory is gone: what was durable is until
// when proofs may have been noted in it. Whoever brings one that was made up to then, without a nonce, is asked for a nonce (§8), and
// the nonces of before the crash are good no more (`steadyNonces`).
import { createHmac } from 'node:crypto';
import { type Clock, epochSeconds, SET_BACK } from '../runtime/clock.ts';
import type { Store } from '../store/contract.ts';
import { artifactKey } from './artifact-keys.ts';
import { recentKeys } from './recent-keys.ts';
import { isFirstUse, REPLAY_MODEL, useHash } from './request-replay.ts';

export interface UsedProofs {
  /** Whether a proof is accepted only with a nonce. @param iat the time in the proof, epoch seconds. */
  needsNonce(iat: number): boolean;
  /** Records a use. @returns true for the first; of simultaneous uses exactly one is the first. */
  isFirst(clientId: string, jti: string): Promise<boolean>;
  /** Stores what is in memory for the next process. Called at the stop, when no more requests come. */
  handOver(): Promise<void>;
}

/** How far ahead a proof may be dated, seconds (FAPI 2.0 Security Profile §5.3.2.1: not more than 60). */
const AHEAD = 60;

/** How long the engine takes a proof without a nonce, seconds from its `iat` on. */
const GOOD_FOR = 300;

/** How long a use is remembered: as long as a proof is good, and the wall clock may be a minute behind. Nonces are good for less. */
const KEPT = AHEAD + GOOD_FOR + 60;

/** How many are kept in memory, about 20 MB; any more are kept in the store. */
const MOST = 250_000;

/** How far ahead the time is written until which proofs may have been noted, seconds. */
const NOTED_AHEAD = 10;

/** The most that are stored at the stop. With more, nothing is stored, and the next process starts as after a crash. */
const MOST_HANDED_OVER = 20_000;

const NOTED_UNTIL = artifactKey(REPLAY_MODEL, 'noted-until');

interface UsedProofsDependencies {
  store: Store;
  /** What durations are by. */
  clock: Clock;
  wallClock: Clock;
  /** How many are remembered at most; as many as {@link MOST} unless said otherwise. */
  most?: number;
}

/** The uses of one tenant's proofs. */
export async function usedProofs(deps: UsedProofsDependencies): Promise<UsedProofs> {
  const { store, clock, wallClock } = deps;
  const before = await store.collection('artifacts').get(NOTED_UNTIL);
  /** Until when uses may have been noted that a crash has lost. */
  const lostUntil = before === undefined ? Number.NEGATIVE_INFINITY : Number(before.payload.until);
  const now = () => epochSeconds(clock);
  const needsNonce = (iat: number) =>
    iat > epochSeconds(wallClock) + AHEAD ||
    iat <= lostUntil + AHEAD ||
    // The wall clock was set back: such a use may be forgotten.
    iat < now() - KEPT + AHEAD;
  const inStore = (clientId: string, jti: string) =>
    isFirstUse(store, [clientId, jti], now() + AHEAD + GOOD_FOR);
  if (store.exclusive !== true) return { needsNonce, isFirst: inStore, handOver: async () => undefined };
  return { needsNonce, ...inMemory(deps, { now, lostUntil, inStore }) };
}

function inMemory(
  { store, most = MOST }: UsedProofsDependencies,
  { now, lostUntil, inStore }: { now(): number; lostUntil: number; inStore: UsedProofs['isFirst'] },
): Pick<UsedProofs, 'isFirst' | 'handOver'> {
  const recent = recentKeys(KEPT);
  const artifacts = store.collection('artifacts');
  const beingStored = new Set<string>();
  // An earlier process may have noted some in the store.
  let lookUntil = now() + KEPT + SET_BACK;
  let notedUntil = Number.NEGATIVE_INFINITY;
  let noting: Promise<void> | undefined;
  let isHandedOver = false;

  const noteUntil = async (until: number): Promise<void> => {
    const expiresAt = until + KEPT + SET_BACK;
    await artifacts.put({ id: NOTED_UNTIL, model: REPLAY_MODEL, payload: { until }, expiresAt });
    notedUntil = until;
  };
  const noted = (at: number): Promise<void> => {
    noting ??= noteUntil(Math.max(at + NOTED_AHEAD, lostUntil)).finally(() => {
      noting = undefined;
    });
    return noting;
  };
  const firstInStore = async (key: string, clientId: string, jti: string): Promise<boolean> => {
    lookUntil = Math.max(lookUntil, now() + KEPT);
    beingStored.add(key);
    try {
      return await inStore(clientId, jti);
    } finally {
      beingStored.delete(key);
    }
  };

  return {
    isFirst: async (clientId, jti) => {
      const at = now();
      const key = useHash([clientId, jti]);
      // No await between this check and the record of the use, so that of simultaneous uses only one passes.
      if (recent.has(key, at) || beingStored.has(key)) return false;
      if (isHandedOver || recent.size() >= most) return firstInStore(key, clientId, jti);
      recent.add(key, at);
      while (at >= notedUntil) await noted(at);
      return at >= lookUntil || (await artifacts.get(artifactKey(REPLAY_MODEL, key))) === undefined;
    },
    handOver: async () => {
      if (recent.size() > MOST_HANDED_OVER) return;
      // A request that comes still is noted in the store.
      isHandedOver = true;
      const expiresAt = now() + KEPT + SET_BACK;
      const records = [...recent.keys()].map((key) => ({
        id: artifactKey(REPLAY_MODEL, key),
        model: REPLAY_MODEL,
        payload: {},
        expiresAt,
      }));
      if (records.length > 0)
        await store.batch(records.map((put) => ({ collection: 'artifacts', put }) as const));
      // What was lost before this process stays lost for as long as such proofs are good.
      if (lostUntil + AHEAD + GOOD_FOR > now()) await noteUntil(lostUntil);
      else await artifacts.delete(NOTED_UNTIL);
    },
  };
}

/** What the engine asks of nonces. */
export interface Nonces {
  /** The one that a client is given. */
  nextChallenge(): string;
  checkChallenge(nonce: string): boolean;
}

/** How long a nonce is the one that is given, seconds; it is good for two such times more. */
const STEP = 60;

/**
 * The nonces of one process (RFC 9449 §8): by a clock that never goes back, so that what was forgotten does not become good again.
 * @param secret 32 bytes, no other process's.
 * @param clock one that never goes back.
 */
export function steadyNonces(secret: Buffer, clock: Clock): Nonces {
  const ofStep = (step: number) => createHmac('sha256', secret).update(String(step)).digest('base64url');
  let made = { step: Number.NaN, nonces: [''] };
  const nonces = (): readonly string[] => {
    const step = Math.floor(epochSeconds(clock) / STEP);
    if (step !== made.step) made = { step, nonces: [step, step - 1, step - 2].map(ofStep) };
    return made.nonces;
  };
  return {
    nextChallenge: () => nonces()[0] ?? '',
    // No constant-time comparison: a nonce is not secret, anybody who asks gets it.
    checkChallenge: (nonce) => nonces().includes(nonce),
  };
}
