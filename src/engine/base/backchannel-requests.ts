// CIBA requests: an application asks for a login without a browser and holds a ticket, which yields tokens once the
// user has approved on a device or at a page. They are kept here and not with the grant because devices that
// approve are second factors, and these do not know the grant.

import type { Challenges } from '../../capabilities/protection/challenges.ts';
import type { Login } from '../../users/login.ts';
import type { AuthorizationDetail } from './authorization-details.ts';

const PURPOSE = 'backchannel_login';

/** Seconds between two polls. */
export const BACKCHANNEL_INTERVAL = 5;
/**
 * The shortest accepted pause between two polls, milliseconds. Less than the interval, because an answer takes its
 * time and clients do not add that to the pause.
 */
const PAUSE = BACKCHANNEL_INTERVAL * 1000 - 500;
/** The most open requests of a user. A further one ends the oldest. */
const MAX_WAITING = 5;

interface BackchannelRequest {
  clientId: string;
  scope: string;
  /** The identifier of the API. */
  audience?: string;
  /** The id of the organization. */
  organization?: string;
  /** The authorization details (RFC 9396). A request with details is approved at a page, which shows them. */
  authorizationDetails?: AuthorizationDetail[];
  /** Whether the API requires consent each time, which only a page can ask for. */
  asksEachTime?: boolean;
  /** The requested authentication context classes, as far as the server supports them. */
  acrValues?: string[];
  /** The message that the user compares with the one that the application shows. */
  bindingMessage?: string;
  /** The connection of the user. */
  connection: string;
  /** The address of the application. */
  ip: string;
}

/** A request that was approved, with the login that approved it. */
interface ApprovedRequest extends BackchannelRequest {
  login?: Login;
  isRecorded?: boolean;
}

/** A request that waits for its user. */
export interface WaitingBackchannelRequest extends BackchannelRequest {
  id: string;
  userId: string;
  /** Epoch milliseconds. */
  issuedAt: number;
  /** Epoch seconds. */
  expiresAt: number;
}

type Deps = { challenges: Challenges };

/** Stores a request. @returns the ticket for the application. */
export async function issueBackchannelRequest(
  { challenges }: Deps,
  userId: string,
  request: BackchannelRequest,
  ttlSeconds: number,
): Promise<string> {
  const data = { ...request };
  const about = { purpose: PURPOSE, subject: userId, userId, ttlSeconds, data };
  return (await challenges.issueForApproval({ ...about, maxWaiting: MAX_WAITING, pause: PAUSE })).secret;
}

/** Returns the requests that wait for a user, newest first. */
export async function waitingBackchannelRequests(
  { challenges }: Deps,
  userId: string,
): Promise<WaitingBackchannelRequest[]> {
  return (await challenges.waitingFor<BackchannelRequest>(PURPOSE, userId)).map((found) => ({
    ...found.data,
    id: found.id,
    userId,
    issuedAt: found.issuedAt,
    expiresAt: found.expiresAt,
  }));
}

/**
 * Records the user's answer, once.
 * @param login the login that approves the request; undefined when the user rejects it.
 * @param isRecorded whether the login made a session and was recorded with it.
 * @returns false when the user has no such request that waits.
 */
export function answerBackchannelRequest(
  { challenges }: Deps,
  { id, userId }: { id: string; userId: string },
  login: Login | undefined,
  isRecorded = false,
): Promise<boolean> {
  const state = login === undefined ? 'rejected' : 'accepted';
  return challenges.recordDecision(PURPOSE, userId, id, state, login && { login, isRecorded });
}

/**
 * Ends the requests of a user, including approved ones whose tokens were not fetched yet.
 * @param of ends only those of this application and for this API, where they are given.
 */
export function endBackchannelRequests(
  { challenges }: Deps,
  userId: string,
  of: Partial<Pick<BackchannelRequest, 'clientId' | 'audience'>> = {},
): Promise<void> {
  return challenges.deleteAllOf(
    PURPOSE,
    userId,
    ({ clientId, audience }) =>
      (of.clientId === undefined || clientId === of.clientId) &&
      (of.audience === undefined || audience === of.audience),
  );
}

export type BackchannelPollResult =
  | { is: 'pending' | 'too-fast' | 'rejected' | 'unknown' }
  | { is: 'approved'; request: BackchannelRequest; login: Login; isRecorded: boolean };

/**
 * Polls a request by its ticket. An approved request is used up: of any number of concurrent polls one gets its
 * login. The ticket of another client counts as unknown and stays valid.
 */
export async function pollBackchannelRequest(
  { challenges }: Deps,
  ticket: string,
  clientId: string,
): Promise<BackchannelPollResult> {
  const found = await challenges.find<BackchannelRequest>(PURPOSE, ticket);
  if (found?.data.clientId !== clientId) return { is: 'unknown' };
  const outcome = await challenges.use(PURPOSE, ticket, undefined);
  if (outcome !== 'accepted') return { is: outcome === 'wrong' ? 'unknown' : outcome };
  // Read again: the approval may have come after the first read.
  const used = await challenges.find<ApprovedRequest>(PURPOSE, ticket);
  const login = used?.data.login;
  if (login === undefined) return { is: 'unknown' };
  return { is: 'approved', request: found.data, login, isRecorded: used?.data.isRecorded === true };
}
