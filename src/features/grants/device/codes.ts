// Device codes and their user codes (RFC 8628): the device holds a ticket, which yields tokens once a user who
// typed the user code has logged in and allowed the request, or once an administrator has.
import type { Challenges } from '../../../capabilities/protection/challenges.ts';
import { asksEachTime } from '../../../records/clients/apis.ts';
import type { DeviceFlowSettings } from '../../../records/tenant/tenant-settings.ts';
import type { AdministratorRole } from '../../../records/users/administrators.ts';
import { type Clock, epochSeconds } from '../../../runtime/clock.ts';
import type { Random } from '../../../runtime/secrets.ts';
import type { Config } from '../../../tenant/config.ts';
import type { Login } from '../../../users/login.ts';

const PURPOSE = 'device_code';

/** How long a user code is valid, seconds. */
export const CODE_SECONDS = 900;
// docs/understand/decisions/tokens.md#an-expired-device-code-is-answered-403-expired_token-once
/** How long after that a polling device still gets `expired_token`, seconds. */
const EXPIRED_ANSWER_SECONDS = 900;
/** How long a device code is known, and can get what was allowed in time, seconds. */
export const DEVICE_CODE_SECONDS = CODE_SECONDS + EXPIRED_ANSWER_SECONDS;
/** Seconds between two polls. */
export const INTERVAL = 5;
/**
 * The shortest accepted pause between two polls, milliseconds. Less than the interval, because an answer takes its
 * time and clients do not add that to the pause.
 */
const PAUSE = INTERVAL * 1000 - 500;
/**
 * How many user codes are tried until a free one is found. Several taken ones in a row happen only if far too many
 * requests wait.
 */
const MAX_DRAWS = 5;

export interface CodeDependencies {
  challenges: Challenges;
  config: Config;
  /** The steady clock. */
  clock: Clock;
  random: Random;
}

interface DeviceRequest {
  clientId: string;
  scope: string;
  /** The identifier of the API. */
  audience?: string;
  /** The organization as sent: an id or a name. */
  organization?: string;
  /** The address of the device. */
  ip: string;
  // docs/understand/decisions/management-api.md#an-administrator-approves-a-programs-user-code-at-the-console
  /** The scopes of the Management API that it asks an administrator for; undefined for a login of a user. */
  asksAdministrator?: readonly string[];
}

export interface WaitingDevice extends DeviceRequest {
  id: string;
  userCode: string;
}

/** The login that has allowed a request, and its organization. */
interface Approval {
  login: Login;
  /** The session of the login. Tokens that were not fetched yet end with it. */
  sessionUid: string;
  /** Whether the user was asked for consent. @see needsConsent */
  hasConsent: boolean;
  organization?: string;
}

/** The administrator who has allowed a request at the console. */
export interface AdministratorApproval {
  login: Login;
  /** The fingerprint of the administrator's second factors at the login. */
  factors: string;
  /** What was allowed. */
  scopes: readonly string[];
  /** The role that it was allowed with. */
  role: AdministratorRole;
  /** The ticket of the approval, which ends with the administrator's sessions. */
  ticket: string;
}

interface StoredDeviceRequest extends DeviceRequest {
  userCode: string;
  /** Epoch seconds. */
  until: number;
  allowed?: Approval;
  approved?: AdministratorApproval;
}

/**
 * Whether the user has to be asked for consent: for a third-party application, or for an API that requires consent
 * each time.
 */
export async function needsConsent(
  { config }: Pick<CodeDependencies, 'config'>,
  { clientId, audience }: Pick<DeviceRequest, 'clientId'> & { audience?: string | undefined },
): Promise<boolean> {
  if ((await config.client(clientId))?.is_first_party === false) return true;
  return audience !== undefined && asksEachTime(await config.resourceServer(audience));
}

/** Issues both codes. @throws Error when no user code is free. */
export async function issueCodes(
  deps: CodeDependencies,
  request: DeviceRequest,
): Promise<{ deviceCode: string; userCode: string }> {
  const { challenges, config, clock, random } = deps;
  const settings = config.settings().tenant.device_flow;
  for (let draw = 0; draw < MAX_DRAWS; draw++) {
    const userCode = newUserCode(settings, random);
    const subject = normalizeUserCode(userCode);
    if ((await challenges.waitingFor(PURPOSE, subject)).length > 0) continue;
    const data: StoredDeviceRequest = { ...request, userCode, until: epochSeconds(clock) + CODE_SECONDS };
    const { secret: deviceCode } = await challenges.issueForApproval({
      purpose: PURPOSE,
      subject,
      ttlSeconds: DEVICE_CODE_SECONDS,
      data: { ...data },
      maxWaiting: 1,
      pause: PAUSE,
    });
    return { deviceCode, userCode };
  }
  throw new Error('no user code is free');
}

/** Returns the request of a typed user code; undefined when none waits with it any more. */
export async function findWaiting(deps: CodeDependencies, typed: string): Promise<WaitingDevice | undefined> {
  const subject = normalizeUserCode(typed);
  if (subject === '') return undefined;
  const [found] = await deps.challenges.waitingFor<StoredDeviceRequest>(PURPOSE, subject);
  const stored = found?.data;
  if (found === undefined || stored === undefined || isExpired(deps, stored)) return undefined;
  return { ...stored, id: found.id };
}

/**
 * Records the decision on a request, once.
 * @param approval the login, or the administrator, that allows it; undefined for a refusal.
 * @returns false when the request does not wait any more.
 */
export async function decideRequest(
  deps: CodeDependencies,
  { id, userCode }: Pick<WaitingDevice, 'id' | 'userCode'>,
  approval: { allowed: Approval } | { approved: AdministratorApproval } | undefined,
): Promise<boolean> {
  if ((await findWaiting(deps, userCode))?.id !== id) return false;
  const state = approval === undefined ? 'rejected' : 'accepted';
  return deps.challenges.recordDecision(PURPOSE, normalizeUserCode(userCode), id, state, approval);
}

export type PollResult =
  | { is: 'pending' | 'too-fast' | 'expired' | 'rejected' | 'unknown' }
  | { is: 'allowed'; request: DeviceRequest; allowed: Approval }
  | { is: 'approved'; approved: AdministratorApproval };

/**
 * Polls a device code. An allowed request is used up: of any number of concurrent polls one gets its login. The
 * code of another client counts as unknown and stays valid.
 */
export async function pollDeviceCode(
  deps: CodeDependencies,
  deviceCode: string,
  clientId: string,
): Promise<PollResult> {
  const { challenges } = deps;
  const found = await challenges.find<StoredDeviceRequest>(PURPOSE, deviceCode);
  const stored = found?.data;
  if (stored === undefined || stored.clientId !== clientId) return { is: 'unknown' };
  // A request that was allowed in time yields tokens as long as the ticket exists.
  if (isExpired(deps, stored) && found?.state === 'pending')
    return (await challenges.deleteTicket(PURPOSE, deviceCode)) ? { is: 'expired' } : { is: 'unknown' };
  const outcome = await challenges.use(PURPOSE, deviceCode, undefined);
  if (outcome !== 'accepted') return { is: outcome === 'wrong' ? 'unknown' : outcome };
  // Read again: the approval may have come after the first read.
  const used = await challenges.find<StoredDeviceRequest>(PURPOSE, deviceCode);
  const { allowed, approved } = used?.data ?? {};
  // Each kind of request has answers of its own kind alone.
  if (stored.asksAdministrator !== undefined)
    return approved === undefined ? { is: 'unknown' } : { is: 'approved', approved };
  return allowed === undefined ? { is: 'unknown' } : { is: 'allowed', request: stored, allowed };
}

function isExpired({ clock }: CodeDependencies, { until }: StoredDeviceRequest): boolean {
  return epochSeconds(clock) >= until;
}

// The user code, which a device shows and a user types (RFC 8628 §6.1).

/**
 * `base20`: letters that cannot be mistaken for others or for digits, and that form no words. `digits`: for devices
 * and users with a numeric keypad.
 */
const CHARSETS = { base20: 'BCDFGHJKLMNPQRSTVWXZ', digits: '0123456789' };

/**
 * Makes a new code in the form in which it is shown.
 * @param settings the tenant's: each `*` of the mask becomes a character of the code.
 */
function newUserCode({ charset, mask }: DeviceFlowSettings, random: Random): string {
  const characters = CHARSETS[charset];
  return mask.replaceAll('*', () => randomOf(characters, random));
}

/** Draws a random character. Bytes that would favour some characters are drawn again. */
function randomOf(characters: string, random: Random): string {
  const fair = 256 - (256 % characters.length);
  for (;;) {
    for (const byte of random(4)) if (byte < fair) return characters[byte % characters.length] ?? '';
  }
}

/** Normalizes a typed code: upper case, without the characters between its letters and digits. */
function normalizeUserCode(typed: string): string {
  return typed.toUpperCase().replaceAll(/[^A-Z0-9]/g, '');
}
