// One-time codes and tickets: what is sent to a person and comes back as the proof that it reached them.
// A code is short and typed, a ticket is long and in a link. Each is kept as a hash, used once even under a
// race, and replaced by the next one for the same subject that the same asker asks for. An out-of-band challenge is
// a ticket that does not do alone: a code that was sent has to come with it, or somebody's approval.

import type { ChallengeRecord } from '../records/protection-state.ts';
import type { Frozen } from '../records/record.ts';
import type { Clock } from '../runtime/clock.ts';
import type { Random } from '../runtime/random.ts';
import { hashSecret } from '../runtime/secrets.ts';
import type { Store, Write } from '../store/contract.ts';
import { askedBy, chosenFor, idOf } from './asked.ts';
import {
  type ChallengeRecords,
  type ChallengeRef,
  createChallengeRecords,
  describe,
  type Issued,
  type Met,
  type NewChallenge,
  type Prepared,
} from './challenge-records.ts';
import { type OutOfBand, outOfBand } from './out-of-band.ts';

export type { ChallengeRef, Issued, Met, NewChallenge, Prepared };

/** Nobody guesses one: no number of wrong tries makes a ticket any weaker. */
const TICKET = /^[\w-]{43}$/;

/** Whether a secret has the form of a ticket. */
export function isTicket(secret: string): boolean {
  return TICKET.test(secret);
}

interface TryOptions {
  /** Whether a right one is used up, with all others of the subject; of any number of racers exactly one succeeds. */
  spend: boolean;
  /** The keys of the caller that tries. */
  askers: readonly string[];
  /** The room of a caller that is known to the account. */
  known: string | undefined;
}

export interface Challenges extends OutOfBand {
  /** Makes a code of that many decimal digits. */
  issueCode(challenge: NewChallenge & { digits: number }): Promise<Issued>;
  /** The same, to be kept together with the message that carries it. */
  prepareCode(challenge: NewChallenge & { digits: number }): Prepared;
  /** Makes a ticket of 43 URL-safe characters. */
  issueTicket(challenge: NewChallenge): Promise<Issued>;
  /** The same, to be kept together with the message that carries it. */
  prepareTicket(challenge: NewChallenge): Prepared;
  /**
   * A challenge that nobody can meet, made where one must not be seen to be missing.
   * @param also what is written beside it: as much as beside one that can be met.
   */
  issueDecoy(challenge: NewChallenge, also: readonly Write[]): Promise<void>;
  /** Takes a challenge back, such as when it could not be sent; one that replaced it stays. */
  takeBack(ref: ChallengeRef): Promise<void>;
  /**
   * Tries a code or a ticket where the subject is known. A code is compared with what the one who tries has asked
   * for, else with what was asked for last, so that of several that are under way one alone can be guessed at a
   * time. Three wrong tries end a code: three of who asked for it, three of each caller known to the account, and
   * three of all others together, whose tries take nothing from those.
   */
  try(purpose: string, subject: string, secret: string, options: TryOptions): Promise<Met | undefined>;
  /** Reads what {@link try} needs, while other things are read, for one such try. */
  prepare(
    purpose: string,
    subject: string,
    secret: string,
  ): (options: TryOptions) => Promise<Met | undefined>;
  /** What is still good of what a caller with this key has asked for. */
  askedBy(purpose: string, subject: string, asker: string): Promise<Met[]>;
  /** What a ticket is for, without using it. */
  peekTicket<Data = Met['data']>(purpose: string, ticket: string): Promise<Met<Data> | undefined>;
  /** Keeps JSON beside a ticket that is still good, in place of what was kept under that name. */
  keepWithTicket(purpose: string, ticket: string, name: string, value: unknown): Promise<void>;
  /** Uses a ticket up: of any number of racers exactly one gets it. */
  spendTicket<Data = Met['data']>(purpose: string, ticket: string): Promise<Met<Data> | undefined>;
  /** Counts a failure of what the ticket stands for; after too many it is dead. */
  penalise(purpose: string, ticket: string): Promise<void>;
  /** Removes a challenge and what is kept beside it: nobody will ask for it again. */
  discard(purpose: string, subject: string): Promise<void>;
  /** Takes back all that was sent to a user. @param but a purpose whose challenges stay. */
  revokeAllOf(userId: string, but?: string): Promise<void>;
  /** Takes back what was begun in a session of a user's and ends with it. */
  revokeOfSession(userId: string, session: string): Promise<void>;
}

/** The challenges in a store. */
export function createChallenges(deps: { store: Store; clock: Clock; random: Random }): Challenges {
  const records = createChallengeRecords(deps);
  return {
    ...codes(records, deps.random),
    ...tickets(records),
    ...outOfBand(records),
    takeBack: async ({ id, secretHash }) => {
      await records.all.update(id, (current) =>
        current.secretHash === secretHash ? { ...current, spent: true } : current,
      );
    },
    discard: async (purpose, subject) => {
      await records.all.delete(idOf(purpose, subject));
    },
    revokeAllOf: async (userId, but) => {
      if (but === undefined) return void (await records.all.deleteBy('user', userId));
      await deleteThose(records, userId, ({ purpose }) => purpose !== but);
    },
    revokeOfSession: (userId, sid) => deleteThose(records, userId, ({ session }) => session === sid),
  };
}

async function deleteThose(
  { all }: ChallengeRecords,
  userId: string,
  isDoomed: (one: Frozen<ChallengeRecord>) => boolean,
): Promise<void> {
  const doomed = (await all.findBy('user', userId)).filter(isDoomed);
  await Promise.all(doomed.map(({ id }) => all.delete(id)));
}

type Codes = Pick<Challenges, 'issueCode' | 'prepareCode' | 'issueDecoy' | 'try' | 'prepare' | 'askedBy'>;

function codes(records: ChallengeRecords, random: Random): Codes {
  const { all, attempt, ofTicket, newCode } = records;
  const prepare: Challenges['prepare'] = (purpose, subject, secret) => {
    const id = idOf(purpose, subject);
    if (!isTicket(secret)) {
      const reading = all.findBy('subject', id);
      // Its failure is met where it is waited for.
      reading.catch(() => undefined);
      return async (options) => tryCode(records, await reading, secret, options);
    }
    return async ({ spend }) => {
      const found = await ofTicket(purpose, secret);
      return found?.subject === id ? (await attempt(found.id, { secret, spend })).met : undefined;
    };
  };
  const prepareCode: Challenges['prepareCode'] = (challenge) => {
    const { code, hash, salt } = newCode(challenge.digits);
    return { secret: code, ...records.prepare(challenge, { secretHash: hash, salt }) };
  };
  return {
    issueCode: async (challenge) => kept(prepareCode(challenge)),
    prepareCode,
    issueDecoy: async (challenge, also) => {
      const secrets = { secretHash: random(32).toString('base64url'), salt: 'decoy' };
      await records.prepare(challenge, secrets).keep(also);
    },
    try: (purpose, subject, secret, options) => prepare(purpose, subject, secret)(options),
    prepare,
    askedBy: async (purpose, subject, asker) =>
      askedBy(await all.findBy('subject', idOf(purpose, subject)), asker)
        .filter(({ spent }) => !spent)
        .map(describe),
  };
}

/** Keeps a challenge alone. */
async function kept({ keep, ...issued }: Prepared): Promise<Issued> {
  await keep();
  return issued;
}

/** The rooms of wrong tries, beside those of known callers. */
const ASKER = 'asker';
const STRANGERS = 'strangers';

/** @param found all challenges of the subject. */
async function tryCode(
  { all, attempt }: ChallengeRecords,
  found: readonly Frozen<ChallengeRecord>[],
  secret: string,
  { spend, askers, known }: TryOptions,
): Promise<Met | undefined> {
  const open = found.filter(({ spent }) => !spent);
  const { challenge: target, isOwn } = chosenFor(open, askers);
  if (target === undefined) return undefined;
  const room = isOwn ? ASKER : (known ?? STRANGERS);
  const { met } = await attempt(target.id, { secret, spend, room });
  if (met !== undefined && spend) {
    await Promise.all(found.filter(({ id }) => id !== target.id).map(({ id }) => all.delete(id)));
  }
  return met;
}

type Tickets = Pick<
  Challenges,
  'issueTicket' | 'prepareTicket' | 'peekTicket' | 'keepWithTicket' | 'spendTicket' | 'penalise'
>;

function tickets({ all, prepare, attempt, ofTicket, newTicket }: ChallengeRecords): Tickets {
  const prepareTicket: Challenges['prepareTicket'] = (challenge) => {
    const ticket = newTicket();
    return { secret: ticket, ...prepare(challenge, { secretHash: hashSecret(ticket) }) };
  };
  return {
    issueTicket: async (challenge) => kept(prepareTicket(challenge)),
    prepareTicket,
    peekTicket: async <Data>(purpose: string, ticket: string) => {
      const found = await ofTicket(purpose, ticket);
      return found === undefined || found.spent || found.triesLeft < 1
        ? undefined
        : (describe(found) as Met<Data>);
    },
    keepWithTicket: async (purpose, ticket, name, value) => {
      const found = await ofTicket(purpose, ticket);
      if (found === undefined) return;
      await all.update(found.id, (current) =>
        current.spent ? current : { ...current, data: { ...current.data, [name]: value } },
      );
    },
    spendTicket: async <Data>(purpose: string, ticket: string) => {
      const found = await ofTicket(purpose, ticket);
      return (
        found && ((await attempt(found.id, { secret: ticket, spend: true })).met as Met<Data> | undefined)
      );
    },
    penalise: async (purpose, ticket) => {
      const found = await ofTicket(purpose, ticket);
      if (found === undefined) return;
      await all.update(found.id, (current) => ({ ...current, triesLeft: current.triesLeft - 1 }));
    },
  };
}
