// Challenges that are answered out of band (spec "OOB MFA challenge"): by a code that was sent, or by a device.

import type { OobChallengeRecord } from '../records/authenticators.ts';
import type { Frozen } from '../records/record.ts';
import { type Clock, epochSeconds } from '../runtime/clock.ts';
import type { Random } from '../runtime/random.ts';
import { hashSecret, isSameSecret } from '../runtime/secrets.ts';
import type { Store } from '../store/contract.ts';
import type { Authenticator } from './authenticators.ts';

export type OobChallenge = Frozen<OobChallengeRecord>;

/** Whom a challenge is for. */
export interface ChallengeFor {
  authenticator: Authenticator;
  clientId: string;
  ip: string;
}

/** What came of asking. */
export type OobOutcome = 'accepted' | 'pending' | 'too-fast' | 'rejected' | 'wrong-code' | 'unknown';

export interface OobChallenges {
  /** A challenge with a code of six digits to be sent. */
  issueCode(about: ChallengeFor): Promise<{ oobCode: string; code: string; revoke(): Promise<void> }>;
  /** A challenge that the device answers; the number is shown at both ends. */
  issueDevice(about: ChallengeFor): Promise<{ oobCode: string; number: string }>;
  /** The challenge of a code, while it is open. */
  find(oobCode: string): Promise<OobChallenge | undefined>;
  /** Uses a challenge: of any number of racers exactly one is `accepted`. */
  use(oobCode: string, bindingCode: string | undefined): Promise<OobOutcome>;
  /** The device's open challenges, newest first. */
  waitingFor(authenticatorId: string): Promise<OobChallenge[]>;
  /** The device's answer, once. @returns false when there is nothing of its to answer. */
  decide(challengeId: string, authenticatorId: string, answer: 'accepted' | 'rejected'): Promise<boolean>;
  revokeAllOf(userId: string): Promise<void>;
}

/** How long a code that was sent is good. */
export const CODE_SECONDS = 300;
const DEVICE_SECONDS = 300;
const TRIES = 3;
/** How many open requests a device shows: of more the oldest end. */
const MOST_WAITING = 5;
/** Who asks again sooner is told to slow down (RFC 8628 §3.5), milliseconds. */
const POLL_PAUSE = 3_000;

/** The challenges in a store. */
export function createOobChallenges({
  store,
  clock,
  random,
}: {
  store: Store;
  clock: Clock;
  random: Random;
}): OobChallenges {
  const challenges = store.collection('oobChallenges');
  const keep = async (
    { authenticator, clientId, ip }: ChallengeFor,
    more: Pick<OobChallengeRecord, 'bindingHash' | 'salt' | 'number'>,
    ttlSeconds: number,
  ): Promise<{ oobCode: string; id: string }> => {
    const oobCode = random(32).toString('base64url');
    const id = hashSecret(oobCode);
    // A new code takes the place of the old one; a device may be asked by several at once, and shows them all.
    if (more.bindingHash !== undefined) await challenges.deleteBy('authenticator', authenticator.id);
    await challenges.insert({
      id,
      user_id: authenticator.user_id,
      client_id: clientId,
      authenticator_id: authenticator.id,
      state: 'pending',
      triesLeft: TRIES,
      ip,
      createdAt: clock(),
      expiresAt: epochSeconds(clock) + ttlSeconds,
      ...more,
    });
    return { oobCode, id };
  };

  const waitingFor = async (authenticatorId: string): Promise<OobChallenge[]> =>
    (await challenges.findBy('authenticator', authenticatorId))
      .filter(({ state, bindingHash }) => state === 'pending' && bindingHash === undefined)
      .sort((a, b) => b.createdAt - a.createdAt);

  return {
    issueCode: async (about) => {
      const code = String((random(6).readUIntBE(0, 6) % 1_000_000) + 1_000_000).slice(1);
      const salt = random(16).toString('base64url');
      const { oobCode, id } = await keep(about, { salt, bindingHash: hashSecret(code, salt) }, CODE_SECONDS);
      return { oobCode, code, revoke: async () => void (await challenges.delete(id)) };
    },
    issueDevice: async (about) => {
      const number = String(10 + ((random(2)[0] ?? 0) % 90));
      const { oobCode } = await keep(about, { number }, DEVICE_SECONDS);
      const oldest = (await waitingFor(about.authenticator.id)).slice(MOST_WAITING);
      await Promise.all(oldest.map(({ id }) => challenges.delete(id)));
      return { oobCode, number };
    },
    find: (oobCode) => challenges.get(hashSecret(oobCode)),
    use: async (oobCode, bindingCode) => {
      let outcome: OobOutcome = 'unknown';
      await challenges.update(hashSecret(oobCode), (current) => {
        const judged = judge(current, bindingCode, clock());
        outcome = judged.outcome;
        return judged.next;
      });
      return outcome;
    },
    waitingFor,
    decide: async (challengeId, authenticatorId, answer) => {
      let isDone = false;
      await challenges.update(challengeId, (current) => {
        const { bindingHash, state, authenticator_id: own } = current;
        isDone = own === authenticatorId && state === 'pending' && bindingHash === undefined;
        return isDone ? { ...current, state: answer } : current;
      });
      return isDone;
    },
    revokeAllOf: async (userId) => {
      await challenges.deleteBy('user', userId);
    },
  };
}

/** What a challenge answers, and what becomes of it. */
function judge(
  current: OobChallenge,
  bindingCode: string | undefined,
  now: number,
): { outcome: OobOutcome; next: OobChallenge } {
  const { bindingHash, salt, state, askedAt, triesLeft } = current;
  if (state === 'spent' || triesLeft < 1) return { outcome: 'unknown', next: current };
  if (bindingHash !== undefined) {
    if (isSameSecret(hashSecret(bindingCode ?? '', salt), bindingHash))
      return { outcome: 'accepted', next: { ...current, state: 'spent' } };
    return { outcome: 'wrong-code', next: { ...current, triesLeft: triesLeft - 1 } };
  }
  if (state === 'accepted') return { outcome: 'accepted', next: { ...current, state: 'spent' } };
  if (state === 'rejected') return { outcome: 'rejected', next: current };
  const tooFast = askedAt !== undefined && now - askedAt < POLL_PAUSE;
  return { outcome: tooFast ? 'too-fast' : 'pending', next: { ...current, askedAt: now } };
}
