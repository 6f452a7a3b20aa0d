// Out-of-band challenges: the caller holds a ticket, and the answer comes another way, as a code that was sent
// somewhere or as a person's approval.
import type { ChallengeRecord } from '../../records/protection-state.ts';
import type { Frozen } from '../../records/record.ts';
import { hashSecret } from '../../runtime/secrets.ts';
import { updateWithResult } from '../../store/update-with-result.ts';
import type {
  ChallengeRecords,
  IssuedChallenge,
  NewChallenge,
  Outcome,
  PreparedChallenge,
  VerifiedChallenge,
} from './challenge-records.ts';
import { idOf } from './challenge-selection.ts';

/** A challenge, as the holder of its ticket and the person who approves it may see it. */
export interface OutOfBandChallenge<Data = VerifiedChallenge['data']> extends VerifiedChallenge<Data> {
  id: string;
  /** `spent`: it was used or revoked. */
  state: 'pending' | 'accepted' | 'rejected' | 'spent';
  /** Whether the ticket needs a code. */
  needsCode: boolean;
  /** Epoch milliseconds. */
  issuedAt: number;
  /** Epoch seconds. */
  expiresAt: number;
}

export interface OutOfBand {
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

/** Returns the out-of-band challenges of a store. */
export function outOfBand(records: ChallengeRecords): OutOfBand {
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
