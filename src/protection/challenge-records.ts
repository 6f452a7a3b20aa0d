// The records of one-time codes and tickets: how one is kept, and how one is judged in a single step of the store.
import type { ChallengeRecord } from '../records/protection-state.ts';
import type { Frozen } from '../records/record.ts';
import { type Clock, epochSeconds } from '../runtime/clock.ts';
import type { Random } from '../runtime/random.ts';
import { hashSecret, isSameSecret, sha256 } from '../runtime/secrets.ts';
import type { Collection, Store, Write } from '../store/contract.ts';
import { updateWithResult } from '../store/update-with-result.ts';
import { askedBy, idOf } from './asked.ts';

/** Wrong tries that a code takes before it is dead. */
const TRIES = 3;

const TICKET_BYTES = 32;
/** Who asks for an approval again sooner is told to slow down (RFC 8628 §3.5), milliseconds. */
const POLL_PAUSE = 3_000;

export interface NewChallenge {
  /** What it proves; one of another purpose never passes for it. */
  purpose: string;
  /** Whom or what it is about; a new challenge of the same purpose, subject and asker replaces the old one. */
  subject: string;
  /**
   * Who asked for it, where several may without undoing what another has asked for: keys of one caller, the first of
   * which is what the next one replaces it by.
   */
  askers?: readonly string[];
  ttlSeconds: number;
  /** Wrong tries that it takes before it is dead; three where nothing is said. */
  tries?: number;
  /** Whose it is: dies with `revokeAllOf`. */
  userId?: string | undefined;
  /** The id of a session of theirs: dies with `revokeOfSession`. */
  session?: string;
  /** JSON, kept beside it. */
  data?: Record<string, unknown>;
}

/**
 * A challenge that was met. `data` is what it was issued with. Challenges of one purpose are issued and read by the same code, which
 * may name the type of it: nobody else writes there, so it is not checked again.
 */
export interface Met<Data = Frozen<Record<string, unknown>>> {
  userId: string | undefined;
  data: Data;
}

/** Says which challenge is meant, and not one that has replaced it. */
export interface ChallengeRef {
  id: string;
  secretHash: string;
}

/** A challenge just made. */
export interface Issued {
  /** The code or ticket; it is kept nowhere. */
  secret: string;
  /** Takes it back, by `Challenges.takeBack`. */
  ref: ChallengeRef;
}

/** A challenge that is not kept yet. */
export interface Prepared extends Issued {
  /** Keeps it, and makes these writes in the same commit: what is lost without it, and it without them. */
  keep(also?: readonly Write[]): Promise<void>;
}

/** What is tried. */
interface Try {
  /** A code, or a ticket. */
  secret: string;
  /** The code that a ticket is bound to. */
  code?: string | undefined;
  /** Whether the challenge is used up where all is right. */
  spend: boolean;
  /** Whose wrong tries count; undefined where none do. */
  room?: string;
}

/**
 * What came of it: `wrong` for a ticket without its code; `pending`, `too-fast` and `rejected` for one that somebody
 * has to approve; `unknown` for whatever is not there, used up or dead.
 */
export type Outcome = 'accepted' | 'wrong' | 'pending' | 'too-fast' | 'rejected' | 'unknown';

/** What a record holds beside what was asked for. */
type Secrets = Pick<ChallengeRecord, 'secretHash' | 'salt' | 'boundCode' | 'approval'>;

export interface ChallengeRecords {
  all: Collection<ChallengeRecord>;
  newTicket(): string;
  /** Decimal digits, and what is kept of them. */
  newCode(digits: number): { code: string; hash: string; salt: string };
  /** A challenge that is yet to be kept, without its secret. */
  prepare(challenge: NewChallenge, secrets: Secrets): Pick<Prepared, 'ref' | 'keep'>;
  /** Tries a secret: of any number of racers one at most meets a challenge that is used up. */
  attempt(id: string, tried: Try): Promise<{ outcome: Outcome; met: Met | undefined }>;
  ofTicket(purpose: string, ticket: string): Promise<Frozen<ChallengeRecord> | undefined>;
}

/** The records in a store. */
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
        keep: async (also = []) => {
          const kept = { ...record, expiresAt: epochSeconds(clock) + challenge.ttlSeconds };
          if (also.length === 0) await all.put(kept);
          else await store.batch([{ collection: 'challenges', put: kept }, ...also]);
          await endOlder(all, id, challenge);
        },
      };
    },
    attempt: async (id, tried) => {
      const result = await updateWithResult(all, id, (current) => {
        const { outcome, next } = outcomeOf(current, tried, clock());
        return { result: { outcome, met: outcome === 'accepted' ? describe(current) : undefined }, next };
      });
      return result ?? { outcome: 'unknown', met: undefined };
    },
    ofTicket: async (purpose, ticket) =>
      (await all.findBy('ticket', hashSecret(ticket))).find((found) => found.purpose === purpose),
  };
}

function recordOf(challenge: NewChallenge, secrets: Secrets, now: number): ChallengeRecord {
  const { purpose, subject, askers, tries = TRIES, userId, session, data = {} } = challenge;
  const isOneOfSeveral = askers !== undefined || secrets.approval !== undefined;
  return {
    // Of those that wait for an approval none takes the place of another.
    id: secrets.approval === undefined ? idOf(purpose, subject, askers?.[0]) : secrets.secretHash,
    purpose,
    ...(isOneOfSeveral && { subject: idOf(purpose, subject), issuedAt: now }),
    ...(askers !== undefined && { askers: askers.map((asker) => sha256(asker)) }),
    ...secrets,
    triesLeft: tries,
    spent: false,
    ...(userId === undefined ? {} : { user_id: userId }),
    ...(session === undefined ? {} : { session }),
    data,
  };
}

/** Ends what the same caller asked for before its browser had the name that it goes by now. */
async function endOlder(
  all: Collection<ChallengeRecord>,
  id: string,
  { purpose, subject, askers = [] }: NewChallenge,
): Promise<void> {
  for (const asker of askers) {
    const older = askedBy(await all.findBy('subject', idOf(purpose, subject)), asker);
    await Promise.all(older.filter((one) => one.id !== id).map((one) => all.delete(one.id)));
  }
}

/** What a try comes to, and what becomes of the record: nothing where `next` is missing. */
function outcomeOf(
  current: Frozen<ChallengeRecord>,
  { secret, code = '', spend, room }: Try,
  now: number,
): { outcome: Outcome; next?: Frozen<ChallengeRecord> } {
  const { salt, boundCode, approval, triesLeft } = current;
  const wrong = room === undefined ? 0 : (current.wrong?.[room] ?? 0);
  if (current.spent || triesLeft <= wrong) return { outcome: 'unknown' };
  if (!isSameSecret(hashSecret(secret, salt), current.secretHash)) {
    if (room === undefined) return { outcome: 'unknown' };
    return { outcome: 'unknown', next: { ...current, wrong: { ...current.wrong, [room]: wrong + 1 } } };
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

/** What who has met a challenge is told of it. */
export function describe({ user_id: userId, data }: Frozen<ChallengeRecord>): Met {
  return { userId, data };
}

/** Each digit from a byte of its own; bytes that would favour some digits are drawn again. */
function randomDigits(random: Random, digits: number): string {
  let code = '';
  while (code.length < digits) {
    for (const byte of random(digits)) {
      if (byte < 250 && code.length < digits) code += String(byte % 10);
    }
  }
  return code;
}
