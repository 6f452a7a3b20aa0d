// The out-of-band challenges of second factors (spec "OOB MFA challenge"): answered by a code that was sent, or by a
// device.
import type { Outcome } from '../protection/challenge-records.ts';
import type { Challenges } from '../protection/challenges.ts';
import type { OutOfBandChallenge } from '../protection/out-of-band.ts';
import type { Random } from '../runtime/random.ts';
import type { Authenticator } from './authenticators.ts';

const PURPOSE = 'mfa_oob';

/** A challenge, with what it is about. */
export interface OobChallenge extends Omit<OutOfBandChallenge, 'data' | 'userId'>, About {
  userId: string | undefined;
}

interface About {
  authenticatorId: string;
  clientId: string;
  ip: string;
  /** What the device shows: to be compared with what the login page shows. */
  number?: string;
}

/** Whom a challenge is for. */
export interface ChallengeFor {
  authenticator: Authenticator;
  clientId: string;
  ip: string;
}

export interface OobChallenges {
  /** A challenge with a code of six digits to be sent; it takes the place of the authenticator's last. */
  issueCode(about: ChallengeFor): Promise<{ oobCode: string; code: string; revoke(): Promise<void> }>;
  /** A challenge that the device answers; the number is shown at both ends. */
  issueDevice(about: ChallengeFor): Promise<{ oobCode: string; number: string }>;
  /** The challenge of an `oob_code`, met or not, until it expires. */
  find(oobCode: string): Promise<OobChallenge | undefined>;
  /** Uses a challenge: of any number of racers exactly one is `accepted`. */
  use(oobCode: string, bindingCode: string | undefined): Promise<Outcome>;
  /** The device's open challenges, newest first. */
  waitingFor(authenticatorId: string): Promise<OobChallenge[]>;
  /** The device's answer, once. @returns false when there is nothing of its to answer. */
  decide(challengeId: string, authenticatorId: string, answer: 'accepted' | 'rejected'): Promise<boolean>;
}

/** How long a code that was sent is good. */
export const CODE_SECONDS = 300;
const DEVICE_SECONDS = 300;
/** How many open requests a device shows: of more the oldest end. */
const MOST_WAITING = 5;

/** The out-of-band challenges of a tenant. */
export function createOobChallenges(challenges: Challenges, random: Random): OobChallenges {
  const newChallenge = ({ authenticator, clientId, ip }: ChallengeFor, number?: string) => ({
    purpose: PURPOSE,
    subject: authenticator.id,
    userId: authenticator.user_id,
    data: { authenticatorId: authenticator.id, clientId, ip, ...(number !== undefined && { number }) },
  });
  return {
    issueCode: async (about) => {
      const challenge = { ...newChallenge(about), digits: 6, ttlSeconds: CODE_SECONDS };
      const { secret: oobCode, code, revoke } = await challenges.issueWithCode(challenge);
      return { oobCode, code, revoke };
    },
    issueDevice: async (about) => {
      const number = String(10 + ((random(2)[0] ?? 0) % 90));
      const challenge = { ...newChallenge(about, number), ttlSeconds: DEVICE_SECONDS, most: MOST_WAITING };
      return { oobCode: (await challenges.issueForApproval(challenge)).secret, number };
    },
    find: async (oobCode) => {
      const found = await challenges.find(PURPOSE, oobCode);
      return found && typed(found);
    },
    use: (oobCode, bindingCode) => challenges.use(PURPOSE, oobCode, bindingCode),
    waitingFor: async (authenticatorId) => (await challenges.waitingFor(PURPOSE, authenticatorId)).map(typed),
    decide: (challengeId, authenticatorId, answer) =>
      challenges.decide(PURPOSE, authenticatorId, challengeId, answer),
  };
}

function typed({ data, ...challenge }: OutOfBandChallenge): OobChallenge {
  return { ...challenge, ...(data as unknown as About) };
}
