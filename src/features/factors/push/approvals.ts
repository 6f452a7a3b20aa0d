// Logins that applications request without a browser (CIBA), approved on the user's devices.

import type { Challenges } from '../../../capabilities/protection/challenges.ts';
import {
  answerBackchannelRequest,
  type WaitingBackchannelRequest,
  waitingBackchannelRequests,
} from '../../../engine/base/backchannel-requests.ts';
import { type Clock, epochSeconds } from '../../../runtime/clock.ts';
import type { Config } from '../../../tenant/config.ts';
import type { Users } from '../../../users/users.ts';
import type { Authenticator, Authenticators } from '../authenticators.ts';
import { DEVICE_KIND } from './device-records.ts';
import type { WebPush } from './web-push.ts';

// docs/understand/decisions/tokens.md#approving-a-backchannel-login-on-a-device-proves-possession-of-the-users-device-and-no-more
/** `swk`, a key in software (RFC 8176 §2): the approval proves possession of the device and nothing else. */
const DEVICE_AMR = ['swk'];

interface ApprovalDependencies {
  challenges: Challenges;
  users: Users;
  wallClock: Clock;
}

/**
 * @param hasDetails whether they have to show `authorization_details`.
 * @returns a function that wakes them; undefined when there are none.
 */
type DevicesOf = (userId: string, hasDetails: boolean) => Promise<(() => Promise<void>) | undefined>;

/** Returns {@link DevicesOf}. It finds no devices when the tenant has switched the factor off. */
export function approvingDevices(deps: {
  authenticators: Authenticators;
  config: Config;
  webPush: WebPush;
}): DevicesOf {
  return async (userId, hasDetails) => {
    const { guardianFactors } = deps.config.settings();
    if (!guardianFactors.some(({ name, enabled }) => name === 'push-notification' && enabled))
      return undefined;
    const devices = (await deps.authenticators.of(userId)).filter(
      ({ active, kind, publicKey, showsDetails = false }) =>
        active && kind === DEVICE_KIND && publicKey !== undefined && (showsDetails || !hasDetails),
    );
    if (devices.length === 0) return undefined;
    return async () => {
      await Promise.all(devices.map((device) => deps.webPush.wake(device)));
    };
  };
}

// docs/understand/decisions/second-factors.md#a-users-devices-get-at-most-ten-approval-requests-at-once-and-ten-an-hour-after-that
/**
 * Returns the requests that wait for the user of a device, newest first. An unconfirmed device gets none. Requests
 * that the device cannot show in full are left out.
 */
export async function waitingApprovals(
  deps: Pick<ApprovalDependencies, 'challenges'>,
  { active, user_id: userId, showsDetails = false }: Authenticator,
): Promise<WaitingBackchannelRequest[]> {
  const waiting = active ? await waitingBackchannelRequests(deps, userId) : [];
  return waiting.filter(
    ({ authorizationDetails, asksEachTime }) =>
      (showsDetails || authorizationDetails === undefined) && asksEachTime !== true,
  );
}

/** Records a device's answer, once. @returns false when no such request waits for its user. */
export async function answerApproval(
  deps: ApprovalDependencies,
  { id, ip, isAllowed }: { id: string; ip: string; isAllowed: boolean },
  device: Authenticator,
): Promise<boolean> {
  const found = (await waitingApprovals(deps, device)).find((one) => one.id === id);
  if (found === undefined) return false;
  const { userId, connection } = found;
  if (!isAllowed) return answerBackchannelRequest(deps, found, undefined);
  return answerBackchannelRequest(deps, found, {
    userId,
    connection,
    amr: DEVICE_AMR,
    // The device is in somebody's hand, who need not be where the tokens go.
    presence: 'absent',
    authTime: epochSeconds(deps.wallClock),
    ip,
    credentialVersion: await deps.users.credentialVersion(userId),
  });
}
