// Device codes and their user codes (RFC 8628): the device holds a ticket, which is good once somebody who typed the
// user code has logged in and allowed it.

import type { Challenges } from '../../protection/challenges.ts';
import { asksEachTime } from '../../records/apis.ts';
import { type Clock, epochSeconds } from '../../runtime/clock.ts';
import type { Random } from '../../runtime/random.ts';
import type { Config } from '../../tenant/config.ts';
import type { Login } from '../../users/login.ts';
import { newUserCode, normalized } from './user-code.ts';

const PURPOSE = 'device_code';

/** How long a code may be typed, seconds. */
export const CODE_SECONDS = 900;
/** How long after that a polling device is still told that the code has expired, seconds. */
const TOLD_SECONDS = 900;
/** Seconds between two polls. */
export const INTERVAL = 5;
/** Less than the interval: answers take their time, and the next request does not wait for that again. Milliseconds. */
const PAUSE = INTERVAL * 1000 - 500;
/**
 * How often a user code is drawn anew because it is taken. Several times in a row happens only if far too many
 * wait.
 */
const DRAWS = 5;

export interface CodeDependencies {
  challenges: Challenges;
  config: Config;
  /** Never goes back. */
  clock: Clock;
  random: Random;
}

/** What a device asks for. */
interface DeviceRequest {
  clientId: string;
  scope: string;
  /** The identifier of an API. */
  audience?: string;
  /** As it was sent: an id or a name. */
  organization?: string;
  /** Where the device is. */
  ip: string;
}

/** A request that waits, as its user sees it. */
export interface WaitingDevice extends DeviceRequest {
  id: string;
  /** As it is shown. */
  userCode: string;
}

/** A request that was allowed: by which login, and with which organization. */
interface Allowed {
  login: Login;
  /** The session of the login. Tokens that were not fetched yet end with it. */
  sessionUid: string;
  /** Whether the user was asked for consent. @see needsConsent */
  hasConsent: boolean;
  organization?: string;
}

interface Kept extends DeviceRequest {
  userCode: string;
  /** Epoch seconds. */
  until: number;
  allowed?: Allowed;
}

/** Whether users are asked for consent: by a third party's application, or for an API that has them asked each time. */
export async function needsConsent(
  { config }: Pick<CodeDependencies, 'config'>,
  { clientId, audience }: Pick<DeviceRequest, 'clientId'> & { audience?: string | undefined },
): Promise<boolean> {
  if ((await config.client(clientId))?.is_first_party === false) return true;
  return audience !== undefined && asksEachTime(await config.resourceServer(audience));
}

/** Makes both codes. @throws Error when no code is free. */
export async function issueCodes(
  deps: CodeDependencies,
  request: DeviceRequest,
): Promise<{ deviceCode: string; userCode: string }> {
  const { challenges, config, clock, random } = deps;
  const settings = config.settings().tenant.device_flow;
  for (let draw = 0; draw < DRAWS; draw++) {
    const userCode = newUserCode(settings, random);
    const subject = normalized(userCode);
    if ((await challenges.waitingFor(PURPOSE, subject)).length > 0) continue;
    const data: Kept = { ...request, userCode, until: epochSeconds(clock) + CODE_SECONDS };
    const { secret: deviceCode } = await challenges.issueForApproval({
      purpose: PURPOSE,
      subject,
      ttlSeconds: CODE_SECONDS + TOLD_SECONDS,
      data: { ...data },
      most: 1,
      pause: PAUSE,
    });
    return { deviceCode, userCode };
  }
  throw new Error('no user code is free');
}

/** The request of a user code that somebody typed; undefined when none waits under it any more. */
export async function findWaiting(deps: CodeDependencies, typed: string): Promise<WaitingDevice | undefined> {
  const subject = normalized(typed);
  if (subject === '') return undefined;
  const [found] = await deps.challenges.waitingFor<Kept>(PURPOSE, subject);
  const kept = found?.data;
  if (found === undefined || kept === undefined || isOver(deps, kept)) return undefined;
  return { ...kept, id: found.id };
}

/**
 * Ends the waiting of a request, once.
 * @param allowed undefined: it is refused.
 * @returns false when it waits no more.
 */
export async function decide(
  deps: CodeDependencies,
  { id, userCode }: Pick<WaitingDevice, 'id' | 'userCode'>,
  allowed: Allowed | undefined,
): Promise<boolean> {
  if ((await findWaiting(deps, userCode))?.id !== id) return false;
  const state = allowed === undefined ? 'rejected' : 'accepted';
  return deps.challenges.decide(PURPOSE, normalized(userCode), id, state, allowed && { allowed });
}

/** What a device that polls is told. */
export type Polled =
  | { is: 'pending' | 'too-fast' | 'expired' | 'rejected' | 'unknown' }
  | { is: 'allowed'; request: DeviceRequest; allowed: Allowed };

/**
 * Asks for a device code. One that was allowed is used up: of any number of racers one gets it. One of another client
 * is unknown to this one, and stays as it is.
 */
export async function poll(deps: CodeDependencies, deviceCode: string, clientId: string): Promise<Polled> {
  const { challenges } = deps;
  const found = await challenges.find<Kept>(PURPOSE, deviceCode);
  const kept = found?.data;
  if (kept === undefined || kept.clientId !== clientId) return { is: 'unknown' };
  // A login that was made in time can be fetched as long as the ticket lives.
  if (isOver(deps, kept) && found?.state === 'pending')
    return (await challenges.end(PURPOSE, deviceCode)) ? { is: 'expired' } : { is: 'unknown' };
  const outcome = await challenges.use(PURPOSE, deviceCode, undefined);
  if (outcome !== 'accepted') return { is: outcome === 'wrong' ? 'unknown' : outcome };
  // Read again: it may have been allowed after it was read.
  const used = await challenges.find<Kept>(PURPOSE, deviceCode);
  const allowed = used?.data.allowed;
  return allowed === undefined ? { is: 'unknown' } : { is: 'allowed', request: kept, allowed };
}

function isOver({ clock }: CodeDependencies, { until }: Kept): boolean {
  return epochSeconds(clock) >= until;
}
