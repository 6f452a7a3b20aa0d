// Out-of-band challenges of second factors (docs/reference/wire/mfa.md), answered with a code that was sent, or by a
// device.
import type { Challenges, Outcome, OutOfBandChallenge } from '../../capabilities/protection/challenges.ts';
import type { Random } from '../../runtime/secrets.ts';
import type { Authenticator } from './authenticators.ts';

const PURPOSE = 'mfa_oob';

/** Lifetimes in seconds: of a code that was sent, and of a request to a device. */
export const CODE_SECONDS = 300;
const DEVICE_SECONDS = 300;
/** How many requests may wait for a device. The oldest one ends when there are more. */
const MAX_WAITING = 5;

interface OobDependencies {
  challenges: Challenges;
  random: Random;
}

/** The authenticator that a challenge is for, and the request that asked for it. */
interface ChallengeContext {
  authenticator: Authenticator;
  clientId: string;
  ip: string;
}

/** A challenge, with the authenticator that it is for and the request that asked for it. */
export interface OobChallenge extends Omit<OutOfBandChallenge, 'data'> {
  authenticatorId: string;
  clientId: string;
  ip: string;
  /** The number that the device and the login page show, to be compared. */
  number?: string;
}

/**
 * Prepares a challenge with a code of six digits, to be stored by its `keep`. It replaces the authenticator's last
 * one.
 */
export function prepareCode({ challenges }: Pick<OobDependencies, 'challenges'>, context: ChallengeContext) {
  const challenge = { ...newChallenge(context), digits: 6, ttlSeconds: CODE_SECONDS };
  const { secret: oobCode, ...prepared } = challenges.prepareWithCode(challenge);
  return { oobCode, ...prepared };
}

/** Issues a challenge that a device answers. Both ends show the number. */
export async function issueDeviceChallenge(
  { challenges, random }: OobDependencies,
  context: ChallengeContext,
) {
  const number = String(10 + ((random(2)[0] ?? 0) % 90));
  const challenge = { ...newChallenge(context, number), ttlSeconds: DEVICE_SECONDS, maxWaiting: MAX_WAITING };
  return { oobCode: (await challenges.issueForApproval(challenge)).secret, number };
}

function newChallenge({ authenticator, clientId, ip }: ChallengeContext, number?: string) {
  return {
    purpose: PURPOSE,
    subject: authenticator.id,
    userId: authenticator.user_id,
    data: { authenticatorId: authenticator.id, clientId, ip, ...(number !== undefined && { number }) },
  };
}

/** Returns the challenge of an `oob_code`, whether answered or not, until it expires. */
export async function findChallenge(
  { challenges }: Pick<OobDependencies, 'challenges'>,
  oobCode: string,
): Promise<OobChallenge | undefined> {
  const found = await challenges.find<ChallengeData>(PURPOSE, oobCode);
  return found && withData(found);
}

/** Uses a challenge. Of several concurrent calls exactly one gets `accepted`. */
export function useChallenge(
  { challenges }: Pick<OobDependencies, 'challenges'>,
  oobCode: string,
  bindingCode: string | undefined,
): Promise<Outcome> {
  return challenges.use(PURPOSE, oobCode, bindingCode);
}

/** Returns the open challenges of a device, newest first. */
export async function waitingForDevice(
  { challenges }: Pick<OobDependencies, 'challenges'>,
  authenticatorId: string,
): Promise<OobChallenge[]> {
  return (await challenges.waitingFor<ChallengeData>(PURPOSE, authenticatorId)).map(withData);
}

/** Records a device's answer, once. @returns false when that device has no such open challenge. */
export function recordDecision(
  { challenges }: Pick<OobDependencies, 'challenges'>,
  challengeId: string,
  authenticatorId: string,
  answer: 'accepted' | 'rejected',
): Promise<boolean> {
  return challenges.recordDecision(PURPOSE, authenticatorId, challengeId, answer);
}

type ChallengeData = Omit<OobChallenge, keyof OutOfBandChallenge>;

function withData({ data, ...challenge }: OutOfBandChallenge<ChallengeData>): OobChallenge {
  return { ...challenge, ...data };
}
