// A ceremony that an application has begun: a login, or the sign-up of somebody new. `auth_session` names it, is good once,
// and for the application alone; what the authenticator signs is derived from it, so that neither tells the other.
import type { Challenges } from '../../protection/challenges.ts';
import type { Random } from '../../runtime/random.ts';
import { sha256 } from '../../runtime/secrets.ts';
import type { Profile } from '../../users/create.ts';
import type { TypedAddresses } from '../../users/signup.ts';

/** What was asked for. */
export interface PasskeySession {
  clientId: string;
  /** The connection's name. */
  connection: string;
  /** The origin of the custom domain that it was begun at. */
  at?: string | undefined;
  /** The waiting request, where it was begun at our own pages. */
  request?: string;
  /** Of a further passkey: whose it will be, and the login that asked for it. */
  owner?: { userId: string; login: string };
  /** Of a sign-up: who signs up. */
  newUser?: TypedAddresses & { handle: string; profile: Profile };
}

export interface SessionDependencies {
  challenges: Challenges;
  random: Random;
}

const PURPOSE = 'passkey';
const SECONDS = 300;

/** Begins a ceremony. @returns `auth_session`, and the challenge for the authenticator. */
export async function beginSession(
  { challenges, random }: SessionDependencies,
  session: PasskeySession,
): Promise<{ authSession: string; challenge: string }> {
  const { secret } = await challenges.issueTicket({
    purpose: PURPOSE,
    // Each look at a page of a request ends what the one before began, and so does a login's next passkey.
    subject: session.request ?? session.owner?.login ?? random(16).toString('base64url'),
    userId: session.owner?.userId,
    ttlSeconds: SECONDS,
    data: { session },
  });
  return { authSession: secret, challenge: challengeOf(secret) };
}

/**
 * Ends a ceremony: of any number of racers one gets it.
 * @returns undefined for one that is over, unknown, or another application's.
 */
export async function endSession(
  { challenges }: Pick<SessionDependencies, 'challenges'>,
  authSession: string,
  clientId: string,
): Promise<{ session: PasskeySession; challenge: string } | undefined> {
  const met = await challenges.spendTicket(PURPOSE, authSession);
  const session = met?.data.session as PasskeySession | undefined;
  if (session === undefined || session.clientId !== clientId) return undefined;
  return { session, challenge: challengeOf(authSession) };
}

function challengeOf(authSession: string): string {
  return sha256(`${PURPOSE} challenge\n${authSession}`);
}

/** The name that an authenticator shows for somebody who signs up. */
export function calledAs({ username, email, phone_number: phone }: TypedAddresses): string {
  return username ?? email ?? phone ?? '';
}
