// The records of one-time codes and tickets, and how a try is decided in one atomic update.
import type { ChallengeRecord } from '../../records/protection-state.ts';
import type { Frozen } from '../../records/record.ts';
import { type Clock, epochSeconds } from '../../runtime/clock.ts';
import type { Random } from '../../runtime/random.ts';
import { hashSecret, isSameSecret, sha256 } from '../../runtime/secrets.ts';
import type { Collection, Store, Write } from '../../store/contract.ts';
import { updateWithResult } from '../../store/update-with-result.ts';
import { idOf, requestedBy } from './challenge-selection.ts';

/** How many wrong tries end a code. */
const TRIES = 3;

const TICKET_BYTES = 32;
/** Minimum pause between polls for an approval, milliseconds (`slow_down`, RFC 8628 §3.5). */
const POLL_PAUSE = 3_000;

export interface NewChallenge {
  /** What it proves. A challenge of another purpose is never accepted in its place. */
  purpose: string;
  /** What it is about. A new challenge of the same purpose, subject and asker replaces the old one. */
  subject: string;
  /**
   * Who requested it, when several callers may have open challenges for one subject: the keys of the caller. A new
   * challenge with the same first key replaces this one.
   */
  askers?: readonly string[];
  ttlSeconds: number;
  /** How many wrong tries end it; three by default. */
  tries?: number;
  /** Its user. `revokeAllOf` deletes it. */
  userId?: string | undefined;
  /** The id of a session of the user. `revokeOfSession` deletes it. */
  session?: string;
  /** Whether it stands for a login that waits for its user. Anybody may begin many, so an address may have fewer. */
  isWaiting?: true;
  /** JSON, stored with it. */
  data?: Record<string, unknown>;
}

/**
 * A challenge whose secret was presented. `data` is what it was issued with. The same code issues and reads the
 * challenges of a purpose and may name the type of their data, so it is not validated again.
 */
export interface VerifiedChallenge<Data = Frozen<Record<string, unknown>>> {
  userId: string | undefined;
  data: Data;
}

/** Identifies one challenge, and not one that has replaced it. */
export interface ChallengeRef {
  id: string;
  secretHash: string;
}

/** A challenge that was just issued. */
export interface IssuedChallenge {
  /** The code or ticket. It is not stored. */
  secret: string;
  /** Identifies it for `Challenges.revoke`. */
  ref: ChallengeRef;
}

/** A challenge that is not stored yet. */
export interface PreparedChallenge extends IssuedChallenge {
  /** Stores it, with the other writes in the same commit. */
  save(also?: readonly Write[]): Promise<void>;
}

/** A secret that is tried. */
interface PresentedSecret {
  /** A code, or a ticket. */
  secret: string;
  /** The code that the ticket needs, if it needs one. */
  code?: string | undefined;
  /** Whether a right secret uses the challenge up. */
  spend: boolean;
  /** The key in `wrong` of the record that a wrong secret is counted under; undefined to count none. */
  counter?: string;
}

/**
 * The result of a try: `wrong` for a ticket without its right code; `pending`, `too-fast` and `rejected` for one
 * that has to be approved; `unknown` for one that does not exist, was used, or had too many wrong tries.
 */
export type Outcome = 'accepted' | 'wrong' | 'pending' | 'too-fast' | 'rejected' | 'unknown';

/** The members of a record that are derived from its secret. */
type Secrets = Pick<ChallengeRecord, 'secretHash' | 'salt' | 'boundCode' | 'approval'>;

export interface ChallengeRecords {
  all: Collection<ChallengeRecord>;
  newTicket(): string;
  /** Makes a code of decimal digits, and its salted hash. */
  newCode(digits: number): { code: string; hash: string; salt: string };
  /** Makes a challenge that is not stored yet, without its secret. */
  prepare(challenge: NewChallenge, secrets: Secrets): Pick<PreparedChallenge, 'ref' | 'save'>;
  /** Tries a secret. When the try uses the challenge up, at most one of several concurrent calls is accepted. */
  attempt(
    id: string,
    presented: PresentedSecret,
  ): Promise<{ outcome: Outcome; verifiedChallenge: VerifiedChallenge | undefined }>;
  ofTicket(purpose: string, ticket: string): Promise<Frozen<ChallengeRecord> | undefined>;
}

/** Returns the challenge records of a store. */
export function createChallengeRecords(deps: {
  store: Store;
  clock: Clock;
  random: Random;
}): ChallengeRecords {
  const { store, clock, random } = deps;
  const all = store.collection('challenges');
  return {
    all,
    newTicket: () => random(TICKET_BYTES).toString('base64url'),
    newCode: (digits) => {
      const code = randomDigits(random, digits);
      const salt = random(16).toString('base64url');
      return { code, hash: hashSecret(code, salt), salt };
    },
    prepare: (challenge, secrets) => {
      const record = recordOf(challenge, secrets, clock());
      const { id, secretHash } = record;
      return {
        ref: { id, secretHash },
        save: async (also = []) => {
          const stored = { ...record, expiresAt: epochSeconds(clock) + challenge.ttlSeconds };
          if (also.length === 0) await all.put(stored);
          else await store.batch([{ collection: 'challenges', put: stored }, ...also]);
          await deleteOlder(all, id, challenge);
        },
      };
    },
    attempt: async (id, presented) => {
      const result = await updateWithResult(all, id, (current) => {
        const { outcome, next } = outcomeOf(current, presented, clock());
        return {
          result: {
            outcome,
            verifiedChallenge: outcome === 'accepted' ? toVerifiedChallenge(current) : undefined,
          },
          next,
        };
      });
      return result ?? { outcome: 'unknown', verifiedChallenge: undefined };
    },
    ofTicket: async (purpose, ticket) =>
      (await all.findBy('ticket', hashSecret(ticket))).find((found) => found.purpose === purpose),
  };
}

function recordOf(challenge: NewChallenge, secrets: Secrets, now: number): ChallengeRecord {
  const { purpose, subject, askers, tries = TRIES, userId, session, isWaiting, data = {} } = challenge;
  const isOneOfSeveral = askers !== undefined || secrets.approval !== undefined;
  return {
    // Challenges that wait for an approval do not replace one another.
    id: secrets.approval === undefined ? idOf(purpose, subject, askers?.[0]) : secrets.secretHash,
    purpose,
    ...(isOneOfSeveral && { subject: idOf(purpose, subject), issuedAt: now }),
    ...(askers !== undefined && { askers: askers.map((asker) => sha256(asker)) }),
    ...secrets,
    triesLeft: tries,
    spent: false,
    ...(userId === undefined ? {} : { user_id: userId }),
    ...(session === undefined ? {} : { session }),
    ...(isWaiting && { isWaiting }),
    data,
  };
}

/** Deletes what the same caller requested under its other keys, for example before its browser had a cookie. */
async function deleteOlder(
  all: Collection<ChallengeRecord>,
  id: string,
  { purpose, subject, askers = [] }: NewChallenge,
): Promise<void> {
  for (const asker of askers) {
    const older = requestedBy(await all.findBy('subject', idOf(purpose, subject)), asker);
    await Promise.all(older.filter((one) => one.id !== id).map((one) => all.delete(one.id)));
  }
}

/** Returns the result of a try, and the changed record if it changes. */
function outcomeOf(
  current: Frozen<ChallengeRecord>,
  { secret, code = '', spend, counter }: PresentedSecret,
  now: number,
): { outcome: Outcome; next?: Frozen<ChallengeRecord> } {
  const { salt, boundCode, approval, triesLeft } = current;
  const wrong = counter === undefined ? 0 : (current.wrong?.[counter] ?? 0);
  if (current.spent || triesLeft <= wrong) return { outcome: 'unknown' };
  if (!isSameSecret(hashSecret(secret, salt), current.secretHash)) {
    if (counter === undefined) return { outcome: 'unknown' };
    return { outcome: 'unknown', next: { ...current, wrong: { ...current.wrong, [counter]: wrong + 1 } } };
  }
  if (boundCode !== undefined && !isSameSecret(hashSecret(code, boundCode.salt), boundCode.hash)) {
    return { outcome: 'wrong', next: { ...current, triesLeft: triesLeft - 1 } };
  }
  if (approval?.state === 'rejected') return { outcome: 'rejected' };
  if (approval?.state === 'pending') {
    const tooFast = approval.askedAt !== undefined && now - approval.askedAt < (approval.pause ?? POLL_PAUSE);
    const next = { ...current, approval: { ...approval, askedAt: now } };
    return { outcome: tooFast ? 'too-fast' : 'pending', next };
  }
  return { outcome: 'accepted', next: { ...current, spent: spend } };
}

/** Returns the part of a record that the holder of its secret gets. */
export function toVerifiedChallenge({ user_id: userId, data }: Frozen<ChallengeRecord>): VerifiedChallenge {
  return { userId, data };
}

/** Returns random digits. Bytes of 250 and more are skipped, because they would make some digits more likely. */
function randomDigits(random: Random, digits: number): string {
  let code = '';
  while (code.length < digits) {
    for (const byte of random(digits)) {
      if (byte < 250 && code.length < digits) code += String(byte % 10);
    }
  }
  return code;
}
