// One-time codes and tickets: what is sent to a person and comes back as the proof that it reached them.
// A code is short and typed, a ticket is long and in a link. Each is kept as a hash, used once even under a
// race, and replaced by the next one for the same subject.
import { createHash } from 'node:crypto';
import { type Clock, epochSeconds, type Random } from '../http/runtime.ts';
import type { ChallengeRecord } from '../store/collections.ts';
import type { Frozen, Store } from '../store/contract.ts';
import { hashSecret, isSameSecret } from './secrets.ts';

/** Wrong tries that a code takes before it is dead. */
const TRIES = 3;

const TICKET_BYTES = 32;

export interface NewChallenge {
  /** What it proves; one of another purpose never passes for it. */
  purpose: string;
  /** Whom or what it is about; a new challenge of the same purpose and subject replaces the old one. */
  subject: string;
  ttlSeconds: number;
  /** Wrong tries that it takes before it is dead; three where nothing is said. */
  tries?: number;
  /** Whose it is: dies with {@link Challenges.revokeAllOf}. */
  userId?: string | undefined;
  /** JSON, kept beside it. */
  data?: Record<string, unknown>;
}

/** A challenge that was met. */
export interface Met {
  userId: string | undefined;
  data: Frozen<Record<string, unknown>>;
}

/** A challenge just made. */
export interface Issued {
  /** The code or ticket; it is kept nowhere. */
  secret: string;
  /** Takes it back, such as when it could not be sent; one that replaced it stays. */
  revoke(): Promise<void>;
}

export interface Challenges {
  /** Makes a code of that many decimal digits. */
  issueCode(challenge: NewChallenge & { digits: number }): Promise<Issued>;
  /** Makes a ticket of 43 URL-safe characters. */
  issueTicket(challenge: NewChallenge): Promise<Issued>;
  /** A challenge that nobody can meet, made where one must not be seen to be missing. */
  issueDecoy(challenge: NewChallenge): Promise<void>;
  /**
   * Tries a code or a ticket where the subject is known; a wrong one counts against the challenge.
   * @param options.spend whether a right one is used up; of any number of racers exactly one then succeeds.
   */
  try(
    purpose: string,
    subject: string,
    secret: string,
    options: { spend: boolean },
  ): Promise<Met | undefined>;
  /** What a ticket is for, without using it. */
  peekTicket(purpose: string, ticket: string): Promise<Met | undefined>;
  /** Uses a ticket up: of any number of racers exactly one gets it. */
  spendTicket(purpose: string, ticket: string): Promise<Met | undefined>;
  /** Counts a failure of what the ticket stands for; after too many it is dead. */
  penalise(purpose: string, ticket: string): Promise<void>;
  /** Removes a challenge and what is kept beside it: nobody will ask for it again. */
  discard(purpose: string, subject: string): Promise<void>;
  /** Takes back all that was sent to a user. */
  revokeAllOf(userId: string): Promise<void>;
}

/** The challenges in a store. */
export function createChallenges({
  store,
  clock,
  random,
}: {
  store: Store;
  clock: Clock;
  random: Random;
}): Challenges {
  const challenges = store.collection('challenges');

  const keep = async (
    { purpose, subject, ttlSeconds, tries = TRIES, userId, data = {} }: NewChallenge,
    secret: Pick<ChallengeRecord, 'secretHash' | 'salt'>,
  ): Promise<() => Promise<void>> => {
    const id = idOf(purpose, subject);
    await challenges.put({
      id,
      purpose,
      ...secret,
      triesLeft: tries,
      spent: false,
      ...(userId === undefined ? {} : { user_id: userId }),
      data,
      expiresAt: epochSeconds(clock) + ttlSeconds,
    });
    return async () => {
      await challenges.update(id, (current) => {
        const next = structuredClone(current) as ChallengeRecord;
        return { ...next, spent: current.spent || current.secretHash === secret.secretHash };
      });
    };
  };

  const attempt = async (id: string, secret: string, spend: boolean): Promise<Met | undefined> => {
    let met: Met | undefined;
    await challenges.update(id, (current) => {
      const next = structuredClone(current) as ChallengeRecord;
      if (current.spent || current.triesLeft < 1) return next;
      if (!isSameSecret(hashSecret(secret, current.salt), current.secretHash)) {
        return { ...next, triesLeft: current.triesLeft - 1 };
      }
      met = describe(current);
      return { ...next, spent: spend };
    });
    return met;
  };

  const ofTicket = async (purpose: string, ticket: string) =>
    (await challenges.findBy('ticket', hashSecret(ticket))).find((found) => found.purpose === purpose);

  return {
    issueCode: async (challenge) => {
      const code = randomDigits(random, challenge.digits);
      const salt = random(16).toString('base64url');
      return { secret: code, revoke: await keep(challenge, { secretHash: hashSecret(code, salt), salt }) };
    },
    issueTicket: async (challenge) => {
      const ticket = random(TICKET_BYTES).toString('base64url');
      return { secret: ticket, revoke: await keep(challenge, { secretHash: hashSecret(ticket) }) };
    },
    issueDecoy: async (challenge) => {
      await keep(challenge, { secretHash: random(TICKET_BYTES).toString('base64url'), salt: 'decoy' });
    },
    try: (purpose, subject, secret, { spend }) => attempt(idOf(purpose, subject), secret, spend),
    peekTicket: async (purpose, ticket) => {
      const found = await ofTicket(purpose, ticket);
      return found === undefined || found.spent || found.triesLeft < 1 ? undefined : describe(found);
    },
    spendTicket: async (purpose, ticket) => {
      const found = await ofTicket(purpose, ticket);
      return found === undefined ? undefined : attempt(found.id, ticket, true);
    },
    penalise: async (purpose, ticket) => {
      const found = await ofTicket(purpose, ticket);
      if (found === undefined) return;
      await challenges.update(found.id, (current) => {
        const next = structuredClone(current) as ChallengeRecord;
        return { ...next, triesLeft: current.triesLeft - 1 };
      });
    },
    discard: async (purpose, subject) => {
      await challenges.delete(idOf(purpose, subject));
    },
    revokeAllOf: async (userId) => {
      await challenges.deleteBy('user', userId);
    },
  };
}

function describe({ user_id: userId, data }: Frozen<ChallengeRecord>): Met {
  return { userId, data };
}

/** Subjects are addresses and numbers of people: the store's keys need not show them. */
function idOf(purpose: string, subject: string): string {
  return `${purpose}:${createHash('sha256').update(subject).digest('base64url')}`;
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
