// One-time codes and tickets, which are sent to a person and come back as the proof that they arrived. A code is
// short and typed; a ticket is long and part of a link. Each is stored as a hash, used once even by concurrent
// requests, and replaced by the next one for the same subject and asker. An out-of-band challenge is a ticket that
// also needs a code or an approval.

import type { Frozen } from '../../records/base/record.ts';
import type { ChallengeRecord } from '../../records/state/protection-state.ts';
import { type Clock, epochSeconds } from '../../runtime/clock.ts';
import { hashSecret, isSameSecret, type Random, sha256 } from '../../runtime/secrets.ts';
import { type Collection, type Store, updateWithResult, type Write } from '../../store/contract.ts';

export type { ChallengeRef, IssuedChallenge, NewChallenge, PreparedChallenge, VerifiedChallenge };

/** The format of a ticket: 32 random bytes. A ticket cannot be guessed, so unknown tickets are not counted. */
const TICKET = /^[\w-]{43}$/;

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
  // docs/understand/decisions/passwordless-messages.md#a-code-belongs-to-the-caller-that-requested-it
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
  /** Returns the unused tickets and codes of a user with a purpose, by their ids. */
  ofUser<Data = VerifiedChallenge['data']>(
    purpose: string,
    userId: string,
  ): Promise<(VerifiedChallenge<Data> & { id: string; expiresAt: number })[]>;
  /** Ends one that {@link ofUser} returned. @returns whether it was there, to one of several concurrent calls. */
  endOfUser(purpose: string, userId: string, id: string): Promise<boolean>;
  discard(purpose: string, subject: string): Promise<void>;
  /** @param exceptPurpose a purpose whose challenges stay. */
  revokeAllOf(userId: string, exceptPurpose?: string): Promise<void>;
  revokeOfSession(userId: string, session: string): Promise<void>;
}

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
    ofUser: async <Data>(purpose: string, userId: string) =>
      (await unspentOf(records, purpose, userId)).map(({ id, expiresAt = 0, ...one }) => ({
        ...(toVerifiedChallenge({ id, ...one }) as VerifiedChallenge<Data>),
        id,
        expiresAt,
      })),
    endOfUser: async (purpose, userId, id) => {
      const found = (await unspentOf(records, purpose, userId)).find((one) => one.id === id);
      return found !== undefined && (await records.all.take(id)) !== undefined;
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

async function unspentOf(
  { all }: ChallengeRecords,
  purpose: string,
  userId: string,
): Promise<Frozen<ChallengeRecord>[]> {
  return (await all.findBy('user', userId)).filter((one) => one.purpose === purpose && !one.spent);
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

// docs/understand/decisions/passwordless-messages.md#strangers-together-have-thirty-wrong-codes-a-day-for-one-address
/** Names of the counts of wrong tries besides those of known callers. */
const ASKER = 'asker';
const STRANGERS = 'strangers';

/** @param found all challenges of the subject. */
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

// Out-of-band challenges: the caller holds a ticket, and the answer comes another way, as a code that was sent
// somewhere or as a person's approval.

/** A challenge, as the holder of its ticket and the person who approves it may see it. */
export interface OutOfBandChallenge<Data = VerifiedChallenge['data']> extends VerifiedChallenge<Data> {
  id: string;
  /** `spent`: it was used or revoked. */
  state: 'pending' | 'accepted' | 'rejected' | 'spent';
  needsCode: boolean;
  /** Epoch milliseconds. */
  issuedAt: number;
  /** Epoch seconds. */
  expiresAt: number;
}

interface OutOfBand {
  /** Makes a ticket that needs a code of that many decimal digits, sent another way. It is not stored yet. */
  prepareWithCode(challenge: NewChallenge & { digits: number }): PreparedChallenge & { code: string };
  /**
   * Issues a ticket that has to be approved. `most`: how many may wait for a subject; the oldest end when there are
   * more. `pause`: minimum milliseconds between two polls.
   */
  issueForApproval(
    challenge: NewChallenge & { maxWaiting: number; pause?: number },
  ): Promise<IssuedChallenge>;
  /** Returns what a ticket is for, and its state, until it expires. */
  find<Data = VerifiedChallenge['data']>(
    purpose: string,
    ticket: string,
  ): Promise<OutOfBandChallenge<Data> | undefined>;
  /** Uses a ticket, with its code if it needs one. Of several concurrent calls exactly one is `accepted`. */
  use(purpose: string, ticket: string, code: string | undefined): Promise<Outcome>;
  /** Returns what waits for the approval of a subject, newest first. */
  waitingFor<Data = VerifiedChallenge['data']>(
    purpose: string,
    subject: string,
  ): Promise<OutOfBandChallenge<Data>[]>;
  /**
   * Approves or rejects a challenge, once.
   * @param data JSON, added to what is stored with it.
   * @returns false when no such challenge waits for the subject.
   */
  recordDecision(
    purpose: string,
    subject: string,
    id: string,
    state: 'accepted' | 'rejected',
    data?: Readonly<Record<string, unknown>>,
  ): Promise<boolean>;
  /** Deletes a ticket. @returns true to one of several concurrent calls. */
  deleteTicket(purpose: string, ticket: string): Promise<boolean>;
  /**
   * Deletes the tickets of a subject, answered or not.
   * @param matches selects them by their data; all by default.
   */
  deleteAllOf(
    purpose: string,
    subject: string,
    matches?: (data: OutOfBandChallenge['data']) => boolean,
  ): Promise<void>;
}

function outOfBand(records: ChallengeRecords): OutOfBand {
  const { all, prepare, attempt, ofTicket, newTicket, newCode } = records;
  return {
    prepareWithCode: (challenge) => {
      const ticket = newTicket();
      const { code, hash, salt } = newCode(challenge.digits);
      const secrets = { secretHash: hashSecret(ticket), boundCode: { hash, salt } };
      return { secret: ticket, code, ...prepare(challenge, secrets) };
    },
    issueForApproval: async (challenge) => {
      const { pause } = challenge;
      const ticket = newTicket();
      const secrets = {
        secretHash: hashSecret(ticket),
        approval: { state: 'pending' as const, ...(pause && { pause }) },
      };
      const { ref, save } = prepare(challenge, secrets);
      await save();
      const oldest = (await waitingFor(records, challenge)).slice(challenge.maxWaiting);
      await Promise.all(oldest.map(({ id }) => all.delete(id)));
      return { secret: ticket, ref };
    },
    find: async <Data>(purpose: string, ticket: string) => {
      const found = await ofTicket(purpose, ticket);
      return found && (toOutOfBandChallenge(found) as OutOfBandChallenge<Data>);
    },
    use: async (purpose, ticket, code) => {
      const found = await ofTicket(purpose, ticket);
      return found === undefined
        ? 'unknown'
        : (await attempt(found.id, { secret: ticket, code, spend: true })).outcome;
    },
    waitingFor: async <Data>(purpose: string, subject: string) =>
      (await waitingFor(records, { purpose, subject })) as OutOfBandChallenge<Data>[],
    deleteTicket: async (purpose, ticket) => {
      const found = await ofTicket(purpose, ticket);
      return found !== undefined && (await all.take(found.id)) !== undefined;
    },
    deleteAllOf: async (purpose, subject, matches = () => true) => {
      const found = await all.findBy('subject', idOf(purpose, subject));
      const matching = found.filter((one) => matches(toOutOfBandChallenge(one).data));
      await Promise.all(matching.map(({ id }) => all.delete(id)));
    },
    recordDecision: async (purpose, subject, id, state, data) => {
      const isRecorded = await updateWithResult(all, id, (current) => {
        if (current.subject !== idOf(purpose, subject) || !isOpen(current)) return { result: false };
        const approval = { ...current.approval, state };
        return { result: true, next: { ...current, approval, data: { ...current.data, ...data } } };
      });
      return isRecorded === true;
    },
  };
}

async function waitingFor(
  { all }: ChallengeRecords,
  { purpose, subject }: Pick<NewChallenge, 'purpose' | 'subject'>,
): Promise<OutOfBandChallenge[]> {
  const found = (await all.findBy('subject', idOf(purpose, subject)))
    .filter(isOpen)
    .map(toOutOfBandChallenge);
  return found.sort((a, b) => b.issuedAt - a.issuedAt);
}

function isOpen({ approval, spent }: Frozen<ChallengeRecord>): boolean {
  return approval?.state === 'pending' && !spent;
}

function toOutOfBandChallenge(record: Frozen<ChallengeRecord>): OutOfBandChallenge {
  const { id, user_id: userId, data, spent, approval, boundCode, issuedAt = 0, expiresAt = 0 } = record;
  const state = spent ? 'spent' : (approval?.state ?? 'pending');
  return { id, userId, data, state, needsCode: boundCode !== undefined, issuedAt, expiresAt };
}

// The records of one-time codes and tickets, and how a try is decided in one atomic update.

/** How many wrong tries end a code. */
const TRIES = 3;

const TICKET_BYTES = 32;
/** Minimum pause between polls for an approval, milliseconds (`slow_down`, RFC 8628 §3.5). */
const POLL_PAUSE = 3_000;

interface NewChallenge {
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
interface VerifiedChallenge<Data = Frozen<Record<string, unknown>>> {
  userId: string | undefined;
  data: Data;
}

/** Identifies one challenge, and not one that has replaced it. */
interface ChallengeRef {
  id: string;
  secretHash: string;
}

interface IssuedChallenge {
  /** The code or ticket. It is not stored. */
  secret: string;
  /** Identifies it for `Challenges.revoke`. */
  ref: ChallengeRef;
}

/** A challenge that is not stored yet. */
interface PreparedChallenge extends IssuedChallenge {
  /** Stores it, with the other writes in the same commit. */
  save(also?: readonly Write[]): Promise<void>;
}

interface PresentedSecret {
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

type Secrets = Pick<ChallengeRecord, 'secretHash' | 'salt' | 'boundCode' | 'approval'>;

interface ChallengeRecords {
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

function createChallengeRecords(deps: { store: Store; clock: Clock; random: Random }): ChallengeRecords {
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
function toVerifiedChallenge({ user_id: userId, data }: Frozen<ChallengeRecord>): VerifiedChallenge {
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

// Selects among several open codes or links for one subject that different callers have requested.

type Challenge = Frozen<ChallengeRecord>;

/**
 * Returns the id of a challenge. It contains hashes, because subjects are addresses and numbers of people, and
 * askers are network addresses.
 */
function idOf(purpose: string, subject: string, asker?: string): string {
  return [purpose, sha256(subject), ...(asker === undefined ? [] : [sha256(asker)])].join(':');
}

function requestedBy(all: readonly Challenge[], asker: string): Challenge[] {
  return all.filter(({ askers }) => askers?.includes(sha256(asker)) === true);
}

/**
 * Returns the challenge to compare a caller's code with: the newest that the caller requested, by its most specific
 * key, or else the newest of all.
 */
function challengeFor(
  all: readonly Challenge[],
  keys: readonly string[],
): { challenge: Challenge | undefined; isOwn: boolean } {
  for (const key of keys) {
    const challenge = newest(requestedBy(all, key));
    if (challenge !== undefined) return { challenge, isOwn: true };
  }
  return { challenge: newest(all), isOwn: false };
}

function newest(all: readonly Challenge[]): Challenge | undefined {
  return [...all].sort((a, b) => (b.issuedAt ?? 0) - (a.issuedAt ?? 0))[0];
}
