// One-time codes and tickets: what is sent to a person and comes back as the proof that it reached them.
// A code is short and typed, a ticket is long and in a link. Each is kept as a hash, used once even under a
// race, and replaced by the next one for the same subject that the same asker asks for.

import type { ChallengeRecord } from '../records/protection-state.ts';
import type { Frozen } from '../records/record.ts';
import { type Clock, epochSeconds } from '../runtime/clock.ts';
import type { Random } from '../runtime/random.ts';
import { hashSecret, isSameSecret, sha256 } from '../runtime/secrets.ts';
import type { Store } from '../store/contract.ts';
import { askedBy, chosenFor, idOf } from './asked.ts';

/** Wrong tries that a code takes before it is dead. */
const TRIES = 3;

const TICKET_BYTES = 32;
/** Nobody guesses one: no number of wrong tries makes a ticket any weaker. */
const TICKET = /^[\w-]{43}$/;

/** Whether a secret has the form of a ticket. */
export function isTicket(secret: string): boolean {
  return TICKET.test(secret);
}

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

export interface TryOptions {
  /** Whether a right one is used up, with all others of the subject; of any number of racers exactly one succeeds. */
  spend: boolean;
  /** The keys of the caller that tries. */
  askers: readonly string[];
  /** The room of a caller that is known to the account. */
  known: string | undefined;
}

export interface Challenges {
  /** Makes a code of that many decimal digits. */
  issueCode(challenge: NewChallenge & { digits: number }): Promise<Issued>;
  /** Makes a ticket of 43 URL-safe characters. */
  issueTicket(challenge: NewChallenge): Promise<Issued>;
  /** A challenge that nobody can meet, made where one must not be seen to be missing. */
  issueDecoy(challenge: NewChallenge): Promise<void>;
  /**
   * Tries a code or a ticket where the subject is known. A code is compared with what the one who tries has asked
   * for, else with what was asked for last, so that of several that are under way one alone can be guessed at a
   * time. Three wrong tries end a code: three of who asked for it, three of each caller known to the account, and
   * three of all others together, whose tries take nothing from those.
   */
  try(purpose: string, subject: string, secret: string, options: TryOptions): Promise<Met | undefined>;
  /** What is still good of what a caller with this key has asked for. */
  askedBy(purpose: string, subject: string, asker: string): Promise<Met[]>;
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
    { purpose, subject, askers, ttlSeconds, tries = TRIES, userId, data = {} }: NewChallenge,
    secret: Pick<ChallengeRecord, 'secretHash' | 'salt'>,
  ): Promise<() => Promise<void>> => {
    const id = idOf(purpose, subject, askers?.[0]);
    await challenges.put({
      id,
      purpose,
      ...(askers !== undefined && {
        subject: idOf(purpose, subject),
        askers: askers.map((asker) => sha256(asker)),
        issuedAt: clock(),
      }),
      ...secret,
      triesLeft: tries,
      spent: false,
      ...(userId === undefined ? {} : { user_id: userId }),
      data,
      expiresAt: epochSeconds(clock) + ttlSeconds,
    });
    for (const asker of askers ?? []) await endOlder(id, idOf(purpose, subject), asker);
    return async () => {
      await challenges.update(id, (current) => {
        return { ...current, spent: current.spent || current.secretHash === secret.secretHash };
      });
    };
  };

  /** Ends what the same caller asked for before its browser had the name that it goes by now. */
  const endOlder = async (id: string, subject: string, asker: string): Promise<void> => {
    const older = askedBy(await challenges.findBy('subject', subject), asker).filter((one) => one.id !== id);
    await Promise.all(older.map((one) => challenges.delete(one.id)));
  };

  /** @param room whose wrong tries count; undefined where none do. */
  const attempt = async (
    id: string,
    secret: string,
    { spend, room }: { spend: boolean; room?: string },
  ): Promise<Met | undefined> => {
    let met: Met | undefined;
    await challenges.update(id, (current) => {
      const wrong = room === undefined ? 0 : (current.wrong?.[room] ?? 0);
      if (current.spent || current.triesLeft <= wrong) return current;
      if (isSameSecret(hashSecret(secret, current.salt), current.secretHash)) {
        met = describe(current);
        return { ...current, spent: spend };
      }
      return room === undefined ? current : { ...current, wrong: { ...current.wrong, [room]: wrong + 1 } };
    });
    return met;
  };

  const tryCode = async (
    purpose: string,
    subject: string,
    secret: string,
    { spend, askers, known }: TryOptions,
  ): Promise<Met | undefined> => {
    const all = await challenges.findBy('subject', idOf(purpose, subject));
    const open = all.filter(({ spent }) => !spent);
    const { challenge: target, isOwn } = chosenFor(open, askers);
    if (target === undefined) return undefined;
    const room = isOwn ? ASKER : (known ?? STRANGERS);
    const met = await attempt(target.id, secret, { spend, room });
    if (met !== undefined && spend) {
      await Promise.all(all.filter(({ id }) => id !== target.id).map(({ id }) => challenges.delete(id)));
    }
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
    try: async (purpose, subject, secret, options) => {
      if (!isTicket(secret)) return tryCode(purpose, subject, secret, options);
      const found = await ofTicket(purpose, secret);
      if (found?.subject !== idOf(purpose, subject)) return undefined;
      return attempt(found.id, secret, { spend: options.spend });
    },
    askedBy: async (purpose, subject, asker) =>
      askedBy(await challenges.findBy('subject', idOf(purpose, subject)), asker)
        .filter(({ spent }) => !spent)
        .map(describe),
    peekTicket: async (purpose, ticket) => {
      const found = await ofTicket(purpose, ticket);
      return found === undefined || found.spent || found.triesLeft < 1 ? undefined : describe(found);
    },
    spendTicket: async (purpose, ticket) => {
      const found = await ofTicket(purpose, ticket);
      return found === undefined ? undefined : attempt(found.id, ticket, { spend: true });
    },
    penalise: async (purpose, ticket) => {
      const found = await ofTicket(purpose, ticket);
      if (found === undefined) return;
      await challenges.update(found.id, (current) => {
        return { ...current, triesLeft: current.triesLeft - 1 };
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

/** The rooms of wrong tries, beside those of known callers. */
const ASKER = 'asker';
const STRANGERS = 'strangers';

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
