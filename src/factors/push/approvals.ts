// Logins that applications ask for without a browser, approved on the devices of their user.
import {
  answerBackchannel,
  type WaitingBackchannel,
  waitingBackchannel,
} from '../../engine/backchannel-requests.ts';
import type { Challenges } from '../../protection/challenges.ts';
import { type Clock, epochSeconds } from '../../runtime/clock.ts';
import type { Config } from '../../tenant/config.ts';
import type { Users } from '../../users/users.ts';
import type { Authenticator, Authenticators } from '../authenticators.ts';
import { KIND } from './device-records.ts';
import type { WebPush } from './web-push.ts';

/** A key in software (RFC 8176 §2): who has the device has approved, and proved nothing else. */
const METHODS = ['swk'];

interface ApprovalDependencies {
  challenges: Challenges;
  users: Users;
  wallClock: Clock;
}

/** The devices of a user. @returns what wakes them; undefined where there are none. */
type DevicesOf = (userId: string) => Promise<(() => Promise<void>) | undefined>;

/** {@link DevicesOf}, where the tenant has devices as a factor. */
export function approvingDevices(deps: {
  authenticators: Authenticators;
  config: Config;
  webPush: WebPush;
}): DevicesOf {
  return async (userId) => {
    const { guardianFactors = [] } = deps.config.settings();
    if (!guardianFactors.some(({ name, enabled }) => name === 'push-notification' && enabled))
      return undefined;
    const devices = (await deps.authenticators.of(userId)).filter(
      ({ active, kind, publicKey }) => active && kind === KIND && publicKey !== undefined,
    );
    if (devices.length === 0) return undefined;
    return async () => {
      await Promise.all(devices.map((device) => deps.webPush.wake(device)));
    };
  };
}

/**
 * What waits for the user of a device, newest first. One that is not confirmed yet is shown nothing; and none what it could
 * not show whole.
 */
export async function waitingApprovals(
  deps: Pick<ApprovalDependencies, 'challenges'>,
  { active, user_id: userId }: Authenticator,
): Promise<WaitingBackchannel[]> {
  const waiting = active ? await waitingBackchannel(deps, userId) : [];
  return waiting.filter((one) => one.authorizationDetails === undefined && one.asksEachTime !== true);
}

/** Takes a device's answer, once. @returns false when there is nothing of its user's to answer. */
export async function answerApproval(
  deps: ApprovalDependencies,
  { id, ip, isAllowed }: { id: string; ip: string; isAllowed: boolean },
  device: Authenticator,
): Promise<boolean> {
  const found = (await waitingApprovals(deps, device)).find((one) => one.id === id);
  if (found === undefined) return false;
  const { userId, connection } = found;
  if (!isAllowed) return answerBackchannel(deps, found, undefined);
  return answerBackchannel(deps, found, {
    userId,
    connection,
    amr: METHODS,
    authTime: epochSeconds(deps.wallClock),
    ip,
    credentialVersion: await deps.users.credentialVersion(userId),
  });
}
