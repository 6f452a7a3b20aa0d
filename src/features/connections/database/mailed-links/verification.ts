// Verifies an e-mail address by its link.
import type { Messages } from '../../../../capabilities/delivery/delivery-messages.ts';
import type { Challenges, VerifiedChallenge } from '../../../../capabilities/protection/challenges.ts';
import type { Config } from '../../../../tenant/config.ts';
import type { Events } from '../../../../tenant/events.ts';
import type { User } from '../../../../users/user.ts';
import type { Users } from '../../../../users/users.ts';
import { databaseEvents } from '../base/database-declaration.ts';
import { EMAIL_VERIFICATION } from '../base/verification-link.ts';
import { type CustomVerificationDependencies, verifyInCustomDatabase } from '../custom/custom-user.ts';

export interface VerificationDependencies extends CustomVerificationDependencies {
  config: Config;
  users: Users;
  challenges: Challenges;
  messages: Messages;
  events: Events;
  /** Removes a user with everything stored about them. */
  removeUser(userId: string): Promise<void>;
}

/** Returns the user of a valid link; undefined if it is not valid, or the user's address is no longer the link's. */
export async function openVerification(
  deps: VerificationDependencies,
  ticket: string,
): Promise<{ user: User; verifiedChallenge: VerifiedChallenge } | undefined> {
  const verifiedChallenge = await deps.challenges.peekTicket(EMAIL_VERIFICATION.purpose, ticket);
  const user =
    verifiedChallenge?.userId === undefined ? undefined : await deps.users.get(verifiedChallenge.userId);
  return verifiedChallenge === undefined || user === undefined || user.email !== verifiedChallenge.data.email
    ? undefined
    : { user, verifiedChallenge };
}

/**
 * @returns the user, now verified; undefined if the link is invalid.
 * @throws AuthError 503 if a custom database could not be updated; the link stays valid then.
 */
export async function verifyEmail(
  deps: VerificationDependencies,
  ticket: string,
  ip: string,
): Promise<User | undefined> {
  const verification = await openVerification(deps, ticket);
  // This comes before the link is used up: if the custom database fails, the user can try the link again.
  if (verification !== undefined)
    await verifyInCustomDatabase(
      deps,
      verification.user.id,
      String(verification.verifiedChallenge.data.email),
    );
  const verifiedChallenge =
    verification && (await deps.challenges.spendTicket(EMAIL_VERIFICATION.purpose, ticket));
  const user =
    verifiedChallenge &&
    (await deps.users.confirmEmail(verification.user.id, String(verifiedChallenge.data.email)));
  if (verifiedChallenge === undefined || user === undefined) {
    recordInvalidLink(deps, verification, ip);
    return undefined;
  }
  const connection = await deps.config.connection(String(verifiedChallenge.data.connection));
  const clientId =
    typeof verifiedChallenge.data.clientId === 'string' ? verifiedChallenge.data.clientId : undefined;
  const application = clientId === undefined ? undefined : await deps.config.client(clientId);
  deps.events.record({
    type: databaseEvents.sv,
    user_id: user.id,
    ip,
    ...(user.email !== undefined && { user_name: user.email }),
    ...(clientId !== undefined && { client_id: clientId }),
    ...(connection && { connection: connection.name }),
  });
  if (user.email !== undefined && deps.messages.template('welcome_email').enabled) {
    await deps.messages.post('welcome_email', { to: user.email, application, connection, user, ip });
  }
  return user;
}

// docs/understand/decisions/passwords-protection.md#a-verification-page-says-what-it-does
/**
 * Consumes the link and deletes the account, which somebody else created with this address. This is possible only while the
 * address is unverified: afterwards the account may be in use.
 * @returns false if the link is invalid, or the address was verified meanwhile.
 */
export async function discardAccount(
  deps: VerificationDependencies,
  ticket: string,
  ip: string,
): Promise<boolean> {
  const verification = await openVerification(deps, ticket);
  const isUnproved = verification?.user.email_verified === false;
  const verifiedChallenge = isUnproved
    ? await deps.challenges.spendTicket(EMAIL_VERIFICATION.purpose, ticket)
    : undefined;
  if (verification === undefined || verifiedChallenge === undefined) {
    recordInvalidLink(deps, verification, ip);
    return false;
  }
  const { id, email } = verification.user;
  await deps.removeUser(id);
  deps.events.record({
    type: databaseEvents.sdu,
    user_id: id,
    ip,
    connection: String(verifiedChallenge.data.connection),
    description: 'discarded by the owner of the address',
    ...(email !== undefined && { user_name: email }),
  });
  return true;
}

function recordInvalidLink(
  { events }: VerificationDependencies,
  verification: { user: User } | undefined,
  ip: string,
): void {
  const userId = verification?.user.id;
  events.record({ type: databaseEvents.fv, ip, description: 'expired', ...(userId && { user_id: userId }) });
}
