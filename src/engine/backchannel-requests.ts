// Logins that an application asks for without a browser (CIBA): the application holds a ticket, which is good once the
// user has approved, on a device or at a page. Kept here because devices are second factors, too, which know nothing of
// the grant.

import type { Challenges } from '../protection/challenges.ts';
import type { Login } from '../users/login.ts';
import type { AuthorizationDetail } from './authorization-details.ts';

const PURPOSE = 'backchannel_login';

/** Seconds between two polls. */
export const BACKCHANNEL_INTERVAL = 5;
/** Less than the interval: answers take their time, and the next request does not wait for that again. Milliseconds. */
const PAUSE = BACKCHANNEL_INTERVAL * 1000 - 500;
/** How many open requests a user has: of more the oldest end. */
const MOST_WAITING = 5;

/** What an application asks for. */
interface BackchannelRequest {
  clientId: string;
  scope: string;
  /** The identifier of an API. */
  audience?: string;
  /** The id of one. */
  organization?: string;
  /** What is asked for in the API's own terms: only a page shows it. */
  authorizationDetails?: AuthorizationDetail[];
  /** The API has its users asked each time: only a page shows what for. */
  asksEachTime?: boolean;
  /** The context classes that are asked for, of those that there are. */
  acrValues?: string[];
  /** What the user compares with what the application shows. */
  bindingMessage?: string;
  /** The connection that the user belongs to. */
  connection: string;
  /** Where the application is. */
  ip: string;
}

/** What is kept beside a request that was answered. */
interface Approved extends BackchannelRequest {
  login?: Login;
  isRecorded?: boolean;
}

/** One that waits for its user. */
export interface WaitingBackchannel extends BackchannelRequest {
  id: string;
  userId: string;
  /** Epoch milliseconds. */
  issuedAt: number;
  /** Epoch seconds. */
  expiresAt: number;
}

type Deps = { challenges: Challenges };

/** Makes a request. @returns the ticket of the application. */
export async function issueBackchannel(
  { challenges }: Deps,
  userId: string,
  request: BackchannelRequest,
  ttlSeconds: number,
): Promise<string> {
  const data = { ...request };
  const about = { purpose: PURPOSE, subject: userId, userId, ttlSeconds, data };
  return (await challenges.issueForApproval({ ...about, most: MOST_WAITING, pause: PAUSE })).secret;
}

/** The requests that wait for a user, newest first. */
export async function waitingBackchannel(
  { challenges }: Deps,
  userId: string,
): Promise<WaitingBackchannel[]> {
  return (await challenges.waitingFor<BackchannelRequest>(PURPOSE, userId)).map((found) => ({
    ...found.data,
    id: found.id,
    userId,
    issuedAt: found.issuedAt,
    expiresAt: found.expiresAt,
  }));
}

/**
 * The user's answer, once.
 * @param login what it is worth; undefined: it is no.
 * @param isRecorded whether the login made a session, and was recorded with it.
 * @returns false when there is nothing of the user's to answer.
 */
export function answerBackchannel(
  { challenges }: Deps,
  { id, userId }: { id: string; userId: string },
  login: Login | undefined,
  isRecorded = false,
): Promise<boolean> {
  const state = login === undefined ? 'rejected' : 'accepted';
  return challenges.decide(PURPOSE, userId, id, state, login && { login, isRecorded });
}

/**
 * Ends the requests of a user, those that were approved and not fetched yet, too.
 * @param of those of an application, and for an API, where they are named.
 */
export function endBackchannelOf(
  { challenges }: Deps,
  userId: string,
  of: Partial<Pick<BackchannelRequest, 'clientId' | 'audience'>> = {},
): Promise<void> {
  return challenges.endAllOf(
    PURPOSE,
    userId,
    ({ clientId, audience }) =>
      (of.clientId === undefined || clientId === of.clientId) &&
      (of.audience === undefined || audience === of.audience),
  );
}

/** What an application that polls is told. */
export type PolledBackchannel =
  | { is: 'pending' | 'too-fast' | 'rejected' | 'unknown' }
  | { is: 'approved'; request: BackchannelRequest; login: Login; isRecorded: boolean };

/**
 * Asks for a ticket. One that was approved is used up: of any number of racers one gets it. One of another client is
 * unknown to this one, and stays as it is.
 */
export async function pollBackchannel(
  { challenges }: Deps,
  ticket: string,
  clientId: string,
): Promise<PolledBackchannel> {
  const found = await challenges.find<BackchannelRequest>(PURPOSE, ticket);
  if (found?.data.clientId !== clientId) return { is: 'unknown' };
  const outcome = await challenges.use(PURPOSE, ticket, undefined);
  if (outcome !== 'accepted') return { is: outcome === 'wrong' ? 'unknown' : outcome };
  // Read again: it may have been approved after it was read.
  const used = await challenges.find<Approved>(PURPOSE, ticket);
  const login = used?.data.login;
  if (login === undefined) return { is: 'unknown' };
  return { is: 'approved', request: found.data, login, isRecorded: used?.data.isRecorded === true };
}
