// Using a code or link: whether it is right, and who has thereby logged in.
import { AuthError } from '../../http/errors.ts';
import type { Attempt } from '../../protection/attempt.ts';
import { type Attempts, tryProof } from '../../protection/attempts.ts';
import { type Caller, callerKeys, type KnownCallers } from '../../protection/callers.ts';
import { type Challenges, isTicket, type Met } from '../../protection/challenges.ts';
import { type Clock, epochSeconds } from '../../runtime/clock.ts';
import type { Events } from '../../tenant/events.ts';
import { NOBODY } from '../../users/identities.ts';
import { FIRST_VERSION, type Login } from '../../users/login.ts';
import type { Users } from '../../users/users.ts';
import type { Channel, PasswordlessConnection } from './connection.ts';
import { PURPOSE, subjectOf } from './start.ts';

export interface VerifyDependencies {
  users: Users;
  challenges: Challenges;
  attempts: Attempts;
  callers: KnownCallers;
  events: Events;
  /** What logins are dated by. */
  wallClock: Clock;
}

export interface Proof {
  clientId: string;
  connection: PasswordlessConnection;
  /** Normalised; undefined when what was sent is no address. */
  address: string | undefined;
  /** A code, or the secret of a link. */
  secret: string;
  /** Who sends it. */
  caller: Caller;
}

/** What a code or link proves: a one-time password, for a number one that came by SMS (RFC 8176 §2). */
const METHODS: Record<Channel, readonly string[]> = { email: ['otp'], sms: ['otp', 'sms'] };

/** SDKs compare these. */
const WRONG: Record<Channel, string> = {
  email: 'Wrong email or verification code.',
  sms: 'Wrong phone number or verification code.',
};

/**
 * Whether a proof is right, without using it up; a wrong one counts.
 * @throws AuthError 403 `invalid_grant`, the same whatever was wrong; 429 when there were too many.
 */
export async function check(deps: VerifyDependencies, proof: Proof): Promise<Met> {
  const { connection, address } = proof;
  if (address === undefined) throw wrong(connection);
  const known = { connection: connection.record.name, kind: connection.kind, address };
  return attempt(deps, proof, (await deps.users.findByAddress(known))?.id, { spend: false });
}

/**
 * Uses a proof up: of any number of racers exactly one gets through.
 * @returns the login; its user is made at the first one, with the address verified.
 * @throws AuthError as {@link check}.
 */
export async function redeem(deps: VerifyDependencies, proof: Proof): Promise<Login> {
  const { connection, address, clientId, secret, caller } = proof;
  if (address === undefined) throw wrong(connection);
  const { name, strategy: provider } = connection.record;
  const identity = { connection: name, kind: connection.kind, address };
  const userId = await deps.users.idByAddress(identity);
  // Read while the try is counted, and before the code is used: what ends logins after that is seen by the version.
  const reading = Promise.all([
    deps.users.get(userId ?? NOBODY),
    userId === undefined ? FIRST_VERSION : deps.users.credentialVersion(userId),
  ]);
  reading.catch(() => undefined);
  // A user who was removed since the code was sent does not come back where nobody may sign up.
  const mayCreate = !connection.disableSignup;
  let proved: Awaited<ReturnType<Users['whoProved']>>;
  await attempt(deps, proof, userId, {
    spend: true,
    before: () => reading,
    after: async () => {
      const [user] = await reading;
      proved = await deps.users.whoProved({ ...identity, provider, mayCreate, seen: { user } });
      return proved?.user.id;
    },
  });
  if (proved === undefined) throw wrong(connection);
  const { user, isNew } = proved;
  const [, credentialVersion] = await reading;
  // With a code that was done when it was tried.
  if (isTicket(secret)) await deps.callers.remember(user.id, caller);
  const seen = { client_id: clientId, connection: name, user_name: address, ip: caller.ip };
  if (isNew) deps.events.record({ ...seen, type: 'ss', user_id: user.id });
  return {
    userId: user.id,
    amr: METHODS[connection.channel],
    connection: name,
    authTime: epochSeconds(deps.wallClock),
    ip: caller.ip,
    credentialVersion,
  };
}

interface Steps {
  /** Whether a right one is used up. */
  spend: boolean;
  /** What is waited for before it is looked at. */
  before?(): Promise<unknown>;
  /** What follows where it is right. @returns who has thereby logged in. */
  after?(): Promise<string | undefined>;
}

async function attempt(
  deps: VerifyDependencies,
  proof: Proof,
  userId: string | undefined,
  { spend, before, after }: Steps,
): Promise<Met> {
  const { clientId, connection, address, secret, caller } = proof;
  if (address === undefined) throw wrong(connection);
  const { name, options } = connection.record;
  const subject = subjectOf(clientId, connection, address);
  const tryIt = deps.challenges.prepare(PURPOSE, subject, secret);
  const look = async (known: string | undefined) => {
    await before?.();
    const met = await tryIt({ spend, askers: callerKeys(caller), known });
    if (met !== undefined && after !== undefined) tried.userId = await after();
    return met;
  };
  const tried: Attempt = {
    connection: name,
    identifier: address,
    userId,
    what: 'code',
    locks: options.brute_force_protection !== false,
    ...caller,
  };
  // Nobody guesses a link: no number of wrong ones stands in the way of the right one.
  const met = await (isTicket(secret) ? look(undefined) : tryProof(deps.attempts, tried, look));
  if (met !== undefined) return met;
  deps.events.record({
    type: 'fp',
    client_id: clientId,
    connection: name,
    user_name: address,
    ip: caller.ip,
  });
  throw wrong(connection);
}

function wrong({ channel }: PasswordlessConnection): AuthError {
  return new AuthError(403, 'invalid_grant', WRONG[channel]);
}
