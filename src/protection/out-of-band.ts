// Challenges that are answered out of band: who asks holds a ticket, and the answer comes another way, as a code that
// was sent somewhere or as somebody's approval.
import type { ChallengeRecord } from '../records/protection-state.ts';
import type { Frozen } from '../records/record.ts';
import { hashSecret } from '../runtime/secrets.ts';
import { updateWithResult } from '../store/update-with-result.ts';
import { idOf } from './asked.ts';
import type { ChallengeRecords, Issued, Met, NewChallenge, Outcome, Prepared } from './challenge-records.ts';

/** A challenge as who holds its ticket, or has to approve it, may know it. */
export interface OutOfBandChallenge<Data = Met['data']> extends Met<Data> {
  id: string;
  /** `spent`: it was met, or taken back. */
  state: 'pending' | 'accepted' | 'rejected' | 'spent';
  /** Whether a code has to come with the ticket. */
  needsCode: boolean;
  /** Epoch milliseconds. */
  issuedAt: number;
  /** Epoch seconds. */
  expiresAt: number;
}

export interface OutOfBand {
  /** A ticket that is good with a code of that many decimal digits alone, which goes another way; yet to be kept. */
  prepareWithCode(challenge: NewChallenge & { digits: number }): Prepared & { code: string };
  /**
   * Makes a ticket that is good once it was approved; of a subject the newest so many wait, older ones end. `pause`:
   * milliseconds between two questions whether it was.
   */
  issueForApproval(challenge: NewChallenge & { most: number; pause?: number }): Promise<Issued>;
  /** What a ticket is for, and what has become of it, until it expires. */
  find<Data = Met['data']>(purpose: string, ticket: string): Promise<OutOfBandChallenge<Data> | undefined>;
  /** Uses a ticket, with the code where there is one: of any number of racers exactly one is `accepted`. */
  use(purpose: string, ticket: string, code: string | undefined): Promise<Outcome>;
  /** What waits for a subject's approval, newest first. */
  waitingFor<Data = Met['data']>(purpose: string, subject: string): Promise<OutOfBandChallenge<Data>[]>;
  /**
   * Approves or rejects, once.
   * @param data JSON, kept beside what was kept before.
   * @returns false when nothing of the subject's waits under this id.
   */
  decide(
    purpose: string,
    subject: string,
    id: string,
    state: 'accepted' | 'rejected',
    data?: Readonly<Record<string, unknown>>,
  ): Promise<boolean>;
  /** Removes a ticket and what is kept of it. @returns true to one of any number of racers. */
  end(purpose: string, ticket: string): Promise<boolean>;
  /**
   * Removes all tickets of a subject: what waits, and what was answered and not fetched yet.
   * @param isMeant by what is kept beside one; all of them where it is left out.
   */
  endAllOf(
    purpose: string,
    subject: string,
    isMeant?: (data: OutOfBandChallenge['data']) => boolean,
  ): Promise<void>;
}

/** The out-of-band challenges among the records. */
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
      const { ref, keep } = prepare(challenge, secrets);
      await keep();
      const oldest = (await waitingFor(records, challenge)).slice(challenge.most);
      await Promise.all(oldest.map(({ id }) => all.delete(id)));
      return { secret: ticket, ref };
    },
    find: async <Data>(purpose: string, ticket: string) => {
      const found = await ofTicket(purpose, ticket);
      return found && (shown(found) as OutOfBandChallenge<Data>);
    },
    use: async (purpose, ticket, code) => {
      const found = await ofTicket(purpose, ticket);
      return found === undefined
        ? 'unknown'
        : (await attempt(found.id, { secret: ticket, code, spend: true })).outcome;
    },
    waitingFor: async <Data>(purpose: string, subject: string) =>
      (await waitingFor(records, { purpose, subject })) as OutOfBandChallenge<Data>[],
    end: async (purpose, ticket) => {
      const found = await ofTicket(purpose, ticket);
      return found !== undefined && (await all.take(found.id)) !== undefined;
    },
    endAllOf: async (purpose, subject, isMeant = () => true) => {
      const own = await all.findBy('subject', idOf(purpose, subject));
      const doomed = own.filter((one) => isMeant(shown(one).data));
      await Promise.all(doomed.map(({ id }) => all.delete(id)));
    },
    decide: async (purpose, subject, id, state, data) => {
      const isDone = await updateWithResult(all, id, (current) => {
        if (current.subject !== idOf(purpose, subject) || !isOpen(current)) return { result: false };
        const approval = { ...current.approval, state };
        return { result: true, next: { ...current, approval, data: { ...current.data, ...data } } };
      });
      return isDone === true;
    },
  };
}

async function waitingFor(
  { all }: ChallengeRecords,
  { purpose, subject }: Pick<NewChallenge, 'purpose' | 'subject'>,
): Promise<OutOfBandChallenge[]> {
  const found = (await all.findBy('subject', idOf(purpose, subject))).filter(isOpen).map(shown);
  return found.sort((a, b) => b.issuedAt - a.issuedAt);
}

function isOpen({ approval, spent }: Frozen<ChallengeRecord>): boolean {
  return approval?.state === 'pending' && !spent;
}

function shown(record: Frozen<ChallengeRecord>): OutOfBandChallenge {
  const { id, user_id: userId, data, spent, approval, boundCode, issuedAt = 0, expiresAt = 0 } = record;
  const state = spent ? 'spent' : (approval?.state ?? 'pending');
  return { id, userId, data, state, needsCode: boundCode !== undefined, issuedAt, expiresAt };
}
