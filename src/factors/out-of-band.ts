// The out-of-band challenges of second factors (docs/wire/mfa.md): answered by a code that was sent, or by a
// device.
import type { Outcome } from '../protection/challenge-records.ts';
import type { Challenges } from '../protection/challenges.ts';
import type { OutOfBandChallenge } from '../protection/out-of-band.ts';
import type { Random } from '../runtime/random.ts';
import type { Authenticator } from './authenticators.ts';

const PURPOSE = 'mfa_oob';

/** How long a code that was sent is good, and how long a device may answer. */
export const CODE_SECONDS = 300;
const DEVICE_SECONDS = 300;
/** How many open requests a device shows: of more the oldest end. */
const MOST_WAITING = 5;

interface OobDependencies {
  challenges: Challenges;
  random: Random;
}

/** Whom a challenge is for. */
interface ChallengeFor {
  authenticator: Authenticator;
  clientId: string;
  ip: string;
}

/** A challenge, with what it is about. */
export interface OobChallenge extends Omit<OutOfBandChallenge, 'data'> {
  authenticatorId: string;
  clientId: string;
  ip: string;
  /** What the device shows: to be compared with what the login page shows. */
  number?: string;
}

/** A challenge with a code of six digits to be sent, yet to be kept; it takes the place of the authenticator's last. */
export function prepareCode({ challenges }: Pick<OobDependencies, 'challenges'>, about: ChallengeFor) {
  const challenge = { ...newChallenge(about), digits: 6, ttlSeconds: CODE_SECONDS };
  const { secret: oobCode, ...prepared } = challenges.prepareWithCode(challenge);
  return { oobCode, ...prepared };
}

/** A challenge that the device answers; the number is shown at both ends. */
export async function issueDevice({ challenges, random }: OobDependencies, about: ChallengeFor) {
  const number = String(10 + ((random(2)[0] ?? 0) % 90));
  const challenge = { ...newChallenge(about, number), ttlSeconds: DEVICE_SECONDS, most: MOST_WAITING };
  return { oobCode: (await challenges.issueForApproval(challenge)).secret, number };
}

function newChallenge({ authenticator, clientId, ip }: ChallengeFor, number?: string) {
  return {
    purpose: PURPOSE,
    subject: authenticator.id,
    userId: authenticator.user_id,
    data: { authenticatorId: authenticator.id, clientId, ip, ...(number !== undefined && { number }) },
  };
}

/** The challenge of an `oob_code`, met or not, until it expires. */
export async function findChallenge(
  { challenges }: Pick<OobDependencies, 'challenges'>,
  oobCode: string,
): Promise<OobChallenge | undefined> {
  const found = await challenges.find<OwnData>(PURPOSE, oobCode);
  return found && typed(found);
}

/** Uses a challenge: of any number of racers exactly one is `accepted`. */
export function useChallenge(
  { challenges }: Pick<OobDependencies, 'challenges'>,
  oobCode: string,
  bindingCode: string | undefined,
): Promise<Outcome> {
  return challenges.use(PURPOSE, oobCode, bindingCode);
}

/** A device's open challenges, newest first. */
export async function waitingForDevice(
  { challenges }: Pick<OobDependencies, 'challenges'>,
  authenticatorId: string,
): Promise<OobChallenge[]> {
  return (await challenges.waitingFor<OwnData>(PURPOSE, authenticatorId)).map(typed);
}

/** The device's answer, once. @returns false when there is nothing of its to answer. */
export function decide(
  { challenges }: Pick<OobDependencies, 'challenges'>,
  challengeId: string,
  authenticatorId: string,
  answer: 'accepted' | 'rejected',
): Promise<boolean> {
  return challenges.decide(PURPOSE, authenticatorId, challengeId, answer);
}

/** What is kept beside a challenge. */
type OwnData = Omit<OobChallenge, keyof OutOfBandChallenge>;

function typed({ data, ...challenge }: OutOfBandChallenge<OwnData>): OobChallenge {
  return { ...challenge, ...data };
}
