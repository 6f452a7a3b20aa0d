// WebAuthn ceremonies that have begun: a login, a sign-up, or a further passkey. An `auth_session` names one; it can be used
// once, by its application only. The WebAuthn challenge is a hash of it, so that the challenge does not reveal it.
import type { Challenges } from '../../../capabilities/protection/challenges.ts';
import type { Random } from '../../../runtime/secrets.ts';
import { sha256 } from '../../../runtime/secrets.ts';
import type { Profile } from '../../../users/create.ts';
import type { TypedAddresses } from '../../../users/signup.ts';

export interface PasskeySession {
  clientId: string;
  /** The connection's name. */
  connection: string;
  /** The origin of the custom domain at which it was begun. */
  at?: string | undefined;
  /** The uid of the waiting request, if it was begun at our own pages. */
  request?: string;
  /** For a further passkey: its user, and the login that requested it. */
  owner?: { userId: string; login: string };
  /** For a sign-up: the addresses, handle, and profile of the new user. */
  newUser?: TypedAddresses & { handle: string; profile: Profile };
}

export interface SessionDependencies {
  challenges: Challenges;
  random: Random;
}

const PURPOSE = 'passkey';
const SESSION_SECONDS = 300;

/** @returns `auth_session`, and the challenge for the authenticator. */
export async function beginSession(
  { challenges, random }: SessionDependencies,
  session: PasskeySession,
): Promise<{ authSession: string; challenge: string }> {
  const { secret } = await challenges.issueTicket({
    purpose: PURPOSE,
    // A ceremony replaces the one that the same request's page, or the same login, began before.
    subject: session.request ?? session.owner?.login ?? random(16).toString('base64url'),
    userId: session.owner?.userId,
    ttlSeconds: SESSION_SECONDS,
    data: { session },
  });
  return { authSession: secret, challenge: challengeOf(secret) };
}

/**
 * Takes a ceremony, exactly once even if it is used several times at once.
 * @returns undefined if it was used, has expired, is unknown, or is another application's.
 */
export async function takeSession(
  { challenges }: Pick<SessionDependencies, 'challenges'>,
  authSession: string,
  clientId: string,
): Promise<{ session: PasskeySession; challenge: string } | undefined> {
  const verifiedChallenge = await challenges.spendTicket(PURPOSE, authSession);
  const session = verifiedChallenge?.data.session as PasskeySession | undefined;
  if (session === undefined || session.clientId !== clientId) return undefined;
  return { session, challenge: challengeOf(authSession) };
}

function challengeOf(authSession: string): string {
  return sha256(`${PURPOSE} challenge\n${authSession}`);
}

/** Returns the name that an authenticator shows for a new user. */
export function displayNameOf({ username, email, phone_number: phone }: TypedAddresses): string {
  return username ?? email ?? phone ?? '';
}
