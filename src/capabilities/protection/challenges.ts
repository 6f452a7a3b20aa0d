// One-time codes and tickets, which are sent to a person and come back as the proof that they arrived. A code is
// short and typed; a ticket is long and part of a link. Each is stored as a hash, used once even by concurrent
// requests, and replaced by the next one for the same subject and asker. An out-of-band challenge is a ticket that
// also needs a code or an approval.

import type { ChallengeRecord } from '../../records/protection-state.ts';
import type { Frozen } from '../../records/record.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Random } from '../../runtime/random.ts';
import { hashSecret } from '../../runtime/secrets.ts';
import type { Store, Write } from '../../store/contract.ts';
import {
  type ChallengeRecords,
  type ChallengeRef,
  createChallengeRecords,
  type IssuedChallenge,
  type NewChallenge,
  type PreparedChallenge,
  toVerifiedChallenge,
  type VerifiedChallenge,
} from './challenge-records.ts';
import { challengeFor, idOf, requestedBy } from './challenge-selection.ts';
import { type OutOfBand, outOfBand } from './out-of-band.ts';

export type { ChallengeRef, IssuedChallenge, NewChallenge, PreparedChallenge, VerifiedChallenge };

/** The format of a ticket: 32 random bytes. A ticket cannot be guessed, so unknown tickets are not counted. */
const TICKET = /^[\w-]{43}$/;

/** Returns whether a secret has the format of a ticket. */
export function isTicket(secret: string): boolean {
  return TICKET.test(secret);
}

interface AttemptOptions {
  /** Whether a right secret is used up, with all others of the subject. Of several concurrent calls one succeeds. */
  spend: boolean;
  /** The keys of the caller. */
  askers: readonly string[];
  /** The key of a known caller of the account; undefined for a stranger. */
  callerKey: string | undefined;
}

export interface Challenges extends OutOfBand {
  /** Issues a code with that many decimal digits. */
  issueCode(challenge: NewChallenge & { digits: number }): Promise<IssuedChallenge>;
  /** As {@link issueCode}, to be stored in one commit with the message that carries it. */
  prepareCode(challenge: NewChallenge & { digits: number }): PreparedChallenge;
  /** Issues a ticket of 43 URL-safe characters. */
  issueTicket(challenge: NewChallenge): Promise<IssuedChallenge>;
  /** As {@link issueTicket}, to be stored in one commit with the message that carries it. */
  prepareTicket(challenge: NewChallenge): PreparedChallenge;
  /**
   * Stores a challenge that no secret fits, so that an unknown address costs the same as a known one.
   * @param also written in the same commit, as much as with a real challenge.
   */
  issueDecoy(challenge: NewChallenge, also: readonly Write[]): Promise<void>;
  /** Ends a challenge, for example when it could not be sent. One that has replaced it stays. */
  revoke(ref: ChallengeRef): Promise<void>;
  /**
   * Tries a code or a ticket for a known subject. A code is compared with the caller's own request, or else with
   * the newest of the subject, and never with several codes: otherwise each open code would make a guess likelier to be right. Three wrong tries end a code. They are
   * counted separately for the caller that requested it, for each known caller, and for all others together.
   */
  try(
    purpose: string,
    subject: string,
    secret: string,
    options: AttemptOptions,
  ): Promise<VerifiedChallenge | undefined>;
  /** Begins to read what {@link try} needs, for one try. */
  prepare(
    purpose: string,
    subject: string,
    secret: string,
  ): (options: AttemptOptions) => Promise<VerifiedChallenge | undefined>;
  /** Returns the unused challenges that a caller with this key has requested. */
  requestedBy(purpose: string, subject: string, asker: string): Promise<VerifiedChallenge[]>;
  /** Returns what a ticket is for, without using it. */
  peekTicket<Data = VerifiedChallenge['data']>(
    purpose: string,
    ticket: string,
  ): Promise<VerifiedChallenge<Data> | undefined>;
  /** Stores JSON with a ticket that is not used up, under a name. */
  storeWithTicket(purpose: string, ticket: string, name: string, value: unknown): Promise<void>;
  /** Uses a ticket. Of several concurrent calls exactly one gets it. */
  spendTicket<Data = VerifiedChallenge['data']>(
    purpose: string,
    ticket: string,
  ): Promise<VerifiedChallenge<Data> | undefined>;
  /**
   * Counts a wrong proof that was sent with a right ticket, such as a wrong code of a second factor. Too many end the
   * ticket.
   */
  countFailure(purpose: string, ticket: string): Promise<void>;
  /** Deletes a challenge. */
  discard(purpose: string, subject: string): Promise<void>;
  /** Deletes all challenges of a user. @param exceptPurpose a purpose whose challenges stay. */
  revokeAllOf(userId: string, exceptPurpose?: string): Promise<void>;
  /** Deletes the challenges that were begun in a session of a user. */
  revokeOfSession(userId: string, session: string): Promise<void>;
}

/** Returns the challenges of a store. */
export function createChallenges(deps: { store: Store; clock: Clock; random: Random }): Challenges {
  const records = createChallengeRecords(deps);
  return {
    ...codes(records, deps.random),
    ...tickets(records),
    ...outOfBand(records),
    revoke: async ({ id, secretHash }) => {
      await records.all.update(id, (current) =>
        current.secretHash === secretHash ? { ...current, spent: true } : current,
      );
    },
    discard: async (purpose, subject) => {
      await records.all.delete(idOf(purpose, subject));
    },
    revokeAllOf: async (userId, exceptPurpose) => {
      if (exceptPurpose === undefined) return void (await records.all.deleteBy('user', userId));
      await deleteMatching(records, userId, ({ purpose }) => purpose !== exceptPurpose);
    },
    revokeOfSession: (userId, sid) => deleteMatching(records, userId, ({ session }) => session === sid),
  };
}

async function deleteMatching(
  { all }: ChallengeRecords,
  userId: string,
  matches: (one: Frozen<ChallengeRecord>) => boolean,
): Promise<void> {
  const matching = (await all.findBy('user', userId)).filter(matches);
  await Promise.all(matching.map(({ id }) => all.delete(id)));
}

type Codes = Pick<Challenges, 'issueCode' | 'prepareCode' | 'issueDecoy' | 'try' | 'prepare' | 'requestedBy'>;

function codes(records: ChallengeRecords, random: Random): Codes {
  const { all, attempt, ofTicket, newCode } = records;
  const prepare: Challenges['prepare'] = (purpose, subject, secret) => {
    const id = idOf(purpose, subject);
    if (!isTicket(secret)) {
      const reading = all.findBy('subject', id);
      // A failure is thrown where the result is awaited. Without a handler here it would count as unhandled until
      // then.
      reading.catch(() => undefined);
      return async (options) => tryCode(records, await reading, secret, options);
    }
    return async ({ spend }) => {
      const found = await ofTicket(purpose, secret);
      return found?.subject === id
        ? (await attempt(found.id, { secret, spend })).verifiedChallenge
        : undefined;
    };
  };
  const prepareCode: Challenges['prepareCode'] = (challenge) => {
    const { code, hash, salt } = newCode(challenge.digits);
    return { secret: code, ...records.prepare(challenge, { secretHash: hash, salt }) };
  };
  return {
    issueCode: async (challenge) => saveAlone(prepareCode(challenge)),
    prepareCode,
    issueDecoy: async (challenge, also) => {
      const secrets = { secretHash: random(32).toString('base64url'), salt: 'decoy' };
      await records.prepare(challenge, secrets).save(also);
    },
    try: (purpose, subject, secret, options) => prepare(purpose, subject, secret)(options),
    prepare,
    requestedBy: async (purpose, subject, asker) =>
      requestedBy(await all.findBy('subject', idOf(purpose, subject)), asker)
        .filter(({ spent }) => !spent)
        .map(toVerifiedChallenge),
  };
}

/** Stores a challenge without other writes. */
async function saveAlone({ save, ...issued }: PreparedChallenge): Promise<IssuedChallenge> {
  await save();
  return issued;
}

/** Names of the counts of wrong tries besides those of known callers. */
const ASKER = 'asker';
const STRANGERS = 'strangers';

/** Tries a code. @param found all challenges of the subject. */
async function tryCode(
  { all, attempt }: ChallengeRecords,
  found: readonly Frozen<ChallengeRecord>[],
  secret: string,
  { spend, askers, callerKey }: AttemptOptions,
): Promise<VerifiedChallenge | undefined> {
  const open = found.filter(({ spent }) => !spent);
  const { challenge: target, isOwn } = challengeFor(open, askers);
  if (target === undefined) return undefined;
  const counter = isOwn ? ASKER : (callerKey ?? STRANGERS);
  const { verifiedChallenge } = await attempt(target.id, { secret, spend, counter });
  if (verifiedChallenge !== undefined && spend) {
    await Promise.all(found.filter(({ id }) => id !== target.id).map(({ id }) => all.delete(id)));
  }
  return verifiedChallenge;
}

type Tickets = Pick<
  Challenges,
  'issueTicket' | 'prepareTicket' | 'peekTicket' | 'storeWithTicket' | 'spendTicket' | 'countFailure'
>;

function tickets({ all, prepare, attempt, ofTicket, newTicket }: ChallengeRecords): Tickets {
  const prepareTicket: Challenges['prepareTicket'] = (challenge) => {
    const ticket = newTicket();
    return { secret: ticket, ...prepare(challenge, { secretHash: hashSecret(ticket) }) };
  };
  return {
    issueTicket: async (challenge) => saveAlone(prepareTicket(challenge)),
    prepareTicket,
    peekTicket: async <Data>(purpose: string, ticket: string) => {
      const found = await ofTicket(purpose, ticket);
      return found === undefined || found.spent || found.triesLeft < 1
        ? undefined
        : (toVerifiedChallenge(found) as VerifiedChallenge<Data>);
    },
    storeWithTicket: async (purpose, ticket, name, value) => {
      const found = await ofTicket(purpose, ticket);
      if (found === undefined) return;
      await all.update(found.id, (current) =>
        current.spent ? current : { ...current, data: { ...current.data, [name]: value } },
      );
    },
    spendTicket: async <Data>(purpose: string, ticket: string) => {
      const found = await ofTicket(purpose, ticket);
      return (
        found &&
        ((await attempt(found.id, { secret: ticket, spend: true })).verifiedChallenge as
          | VerifiedChallenge<Data>
          | undefined)
      );
    },
    countFailure: async (purpose, ticket) => {
      const found = await ofTicket(purpose, ticket);
      if (found === undefined) return;
      await all.update(found.id, (current) => ({ ...current, triesLeft: current.triesLeft - 1 }));
    },
  };
}
