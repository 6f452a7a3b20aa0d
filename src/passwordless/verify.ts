// Using a code or link: whether it is right, and who has thereby logged in.
import { AuthError } from '../http/errors.ts';
import { type Attempts, tryProof } from '../protection/attempts.ts';
import type { Challenges, Met } from '../protection/challenges.ts';
import type { Events } from '../tenant/events.ts';
import { FIRST_VERSION, type Login } from '../users/login.ts';
import type { Channel } from '../users/proved.ts';
import type { Users } from '../users/users.ts';
import type { PasswordlessConnection } from './connection.ts';
import { PURPOSE, subjectOf } from './start.ts';

export interface VerifyDependencies {
  users: Users;
  challenges: Challenges;
  attempts: Attempts;
  events: Events;
}

export interface Proof {
  clientId: string;
  connection: PasswordlessConnection;
  /** Normalised; undefined when what was sent is no address. */
  address: string | undefined;
  /** A code, or the secret of a link. */
  secret: string;
  ip: string;
}

/** What a code or link proves: a one-time password, for a number one that came by SMS (RFC 8176 §2). */
const METHODS: Record<Channel, readonly string[]> = { email: ['otp'], sms: ['otp', 'sms'] };

/** SDKs compare these (wire-details 0.5). */
const WRONG: Record<Channel, string> = {
  email: 'Wrong email or verification code.',
  sms: 'Wrong phone number or verification code.',
};

/**
 * Whether a proof is right, without using it up; a wrong one counts.
 * @throws AuthError 403 `invalid_grant`, the same whatever was wrong; 429 when there were too many.
 */
export async function check(deps: VerifyDependencies, proof: Proof): Promise<Met> {
  return attempt(deps, proof, false);
}

/**
 * Uses a proof up: of any number of racers exactly one gets through.
 * @returns the login; its user is made at the first one, with the address verified.
 * @throws AuthError as {@link check}.
 */
export async function redeem(deps: VerifyDependencies, proof: Proof): Promise<Login> {
  const { connection, address, clientId, ip } = proof;
  if (address === undefined) throw wrong(connection);
  const identity = { connection: connection.record.name, channel: connection.channel, address };
  const before = await deps.users.findByAddress(identity);
  const credentialVersion =
    before === undefined ? FIRST_VERSION : await deps.users.credentialVersion(before.id);
  await attempt(deps, proof, true);
  const known = await deps.users.findByAddress(identity);
  // A user who was removed since the code was sent does not come back where nobody may sign up.
  if (known === undefined && connection.disableSignup) throw wrong(connection);
  const user = await deps.users.whoProved(identity);
  const seen = { client_id: clientId, connection: connection.record.name, user_name: address, ip };
  if (known === undefined) deps.events.record({ ...seen, type: 'ss', user_id: user.id });
  return {
    userId: user.id,
    amr: METHODS[connection.channel],
    connection: identity.connection,
    credentialVersion,
  };
}

async function attempt(deps: VerifyDependencies, proof: Proof, spend: boolean): Promise<Met> {
  const { clientId, connection, address, secret, ip } = proof;
  if (address === undefined) throw wrong(connection);
  const { name, options } = connection.record;
  const known = await deps.users.findByAddress({ connection: name, channel: connection.channel, address });
  const tried = {
    connection: name,
    identifier: address,
    userId: known?.id,
    ip,
    locks: options.brute_force_protection !== false,
  };
  const subject = subjectOf(clientId, connection, address);
  const met = await tryProof(deps.attempts, tried, () =>
    deps.challenges.try(PURPOSE, subject, secret, { spend }),
  );
  if (met !== undefined) return met;
  deps.events.record({
    type: 'fp',
    client_id: clientId,
    connection: tried.connection,
    user_name: address,
    ip,
  });
  throw wrong(connection);
}

function wrong({ channel }: PasswordlessConnection): AuthError {
  return new AuthError(403, 'invalid_grant', WRONG[channel]);
}
