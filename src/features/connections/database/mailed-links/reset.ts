// Sets a new password by a mailed link.
import type { Messages } from '../../../../capabilities/delivery/delivery-messages.ts';
import type { Attempts } from '../../../../capabilities/protection/attempts.ts';
import type { Challenges, VerifiedChallenge } from '../../../../capabilities/protection/challenges.ts';
import type { Caller, KnownCallers } from '../../../../capabilities/protection/rate-limit.ts';
import { AuthError } from '../../../../http/errors.ts';
import type { Languages } from '../../../../http/languages.ts';
import type { Connection } from '../../../../records/collections.ts';
import { databaseOptions, passwordUse } from '../../../../records/database-options.ts';
import type { DatabaseOptions } from '../../../../records/tenant/tenant.ts';
import type { Write } from '../../../../store/contract.ts';
import type { Config } from '../../../../tenant/config.ts';
import type { Events } from '../../../../tenant/events.ts';
import type { Asker } from '../../../../users/asker.ts';
import { originalUserId } from '../../../../users/changes.ts';
import { newPasswordRefusal, type PasswordRefusal } from '../../../../users/signup.ts';
import type { User } from '../../../../users/user.ts';
import type { Users } from '../../../../users/users.ts';
import { databaseEvents } from '../base/database-declaration.ts';
import { type CustomVerificationDependencies, verifyInCustomDatabase } from '../custom/custom-user.ts';
import { PASSWORD_RESET } from './reset-link.ts';
import { mainIdentifier, ticketOptions } from './ticket-link.ts';

export interface ResetDependencies extends CustomVerificationDependencies {
  config: Config;
  users: Users;
  challenges: Challenges;
  attempts: Attempts;
  callers: KnownCallers;
  messages: Messages;
  events: Events;
  /** Ends pending enrollments and approvals of second factors, and forgets remembered browsers. */
  endPending(userId: string): Promise<void>;
  endSessions(userId: string): Promise<void>;
  /** Does what `endSessions` does, and removes second factors and consents. */
  endAll(userId: string): Promise<void>;
  detachLinked(userId: string): Promise<void>;
}

export interface OpenReset {
  user: User;
  /** The id under which the password is stored: the user's, or that of an identity that was linked to them. */
  home: string;
  connection: Connection;
  options: DatabaseOptions;
  /** The version of the user's credential, for which the link is valid. */
  version: number;
  verifiedChallenge: VerifiedChallenge;
}

/**
 * @param purpose of the ticket; by default that of a link.
 * @returns undefined if the ticket is not valid, the user no longer exists or has another address or name, or the
 *   password was changed since the ticket was issued.
 */
export async function openReset(
  deps: ResetDependencies,
  ticket: string,
  purpose: string = PASSWORD_RESET.purpose,
): Promise<OpenReset | undefined> {
  const verifiedChallenge = await deps.challenges.peekTicket(purpose, ticket);
  if (verifiedChallenge?.userId === undefined) return undefined;
  const user = await deps.users.get(verifiedChallenge.userId);
  const connection = await deps.config.connection(String(verifiedChallenge.data.connection));
  // Passwords may have been switched off since the link was mailed.
  if (user === undefined || connection === undefined || !passwordUse(connection).logsIn) return undefined;
  // The identity is compared, not the user: a linked identity has an address and a password of its own.
  const identity = (await deps.users.identitiesOf(user.id)).find(
    (one) =>
      one.connection === connection.name &&
      Object.entries(mainIdentifier(one)).every(
        ([kind, name]) => name !== undefined && verifiedChallenge.data[kind] === name,
      ),
  );
  if (identity === undefined) return undefined;
  // A link is valid only until the password is changed.
  const version = await deps.users.credentialVersion(user.id);
  if (version !== verifiedChallenge.data.credentialVersion) return undefined;
  return {
    user,
    home: originalUserId(identity),
    connection,
    options: databaseOptions(connection),
    version,
    verifiedChallenge,
  };
}

export function recordRefusedReset(
  { events }: Pick<ResetDependencies, 'events'>,
  reset: OpenReset | undefined,
  { reason, ip }: { reason: ResetRefusal['reason']; ip: string },
): void {
  const { user, connection } = reset ?? {};
  events.record({
    type: databaseEvents.fcp,
    ip,
    description: reason,
    ...(connection && { connection: connection.name }),
    ...(user && { user_id: user.id }),
    ...(user?.email !== undefined && { user_name: user.email }),
  });
}

interface NewPassword {
  ticket: string;
  /** The ticket's purpose, if it is not a link. */
  purpose?: string;
  password: string;
  caller: Caller;
  languages: Languages;
  asker: Asker;
  /** The user as they were judged, if it is set by their login; see {@link stillWrite}. */
  by?: User;
}

export type ResetRefusal =
  | PasswordRefusal
  | { reason: 'expired' }
  /** The custom database did not change it. */
  | { reason: 'not-changed' };

// docs/understand/decisions/passwords-protection.md#a-reset-ends-the-users-sessions-codes-refresh-tokens-and-opaque-access-tokens
/**
 * Sets the new password and consumes the link. Ends the user's sessions and tokens (unless the tenant keeps them), other
 * links and pending logins, and informs the user by mail. If the address was never verified, whoever set the old password
 * may not be its owner: then second factors and consents are removed, too, and linked identities are detached.
 * @returns the refusal; undefined if the password was set.
 */
export async function resetPassword(
  deps: ResetDependencies,
  { user, home, connection, options, version, verifiedChallenge }: OpenReset,
  { ticket, purpose = PASSWORD_RESET.purpose, password, caller, languages, asker, by }: NewPassword,
): Promise<ResetRefusal | undefined> {
  const refusal = await newPasswordRefusal(deps.users, options, password, { user, home });
  if (refusal !== undefined) return refusal;
  if ((await deps.challenges.spendTicket(purpose, ticket)) === undefined) return { reason: 'expired' };
  const clientId =
    typeof verifiedChallenge.data.clientId === 'string' ? verifiedChallenge.data.clientId : undefined;
  // A user who requested the ticket while logged in does not take over the account: factors and identities stay.
  const isByLink = purpose === PASSWORD_RESET.purpose && ticketOptions(verifiedChallenge)?.isOwn !== true;
  const isTakenOver = isByLink && mayTakeOver(user, verifiedChallenge);
  const also = [unlessAddressChanged(user), ...(isTakenOver ? [unverifyNumber(user.id)] : [])];
  // Of several links used at the same time only the first sets a password; for the others the version has changed.
  const passwordChange = {
    home,
    asker: { ...asker, clientId },
    version,
    also,
    by,
  };
  const outcome = await deps.users.setPassword(user.id, password, passwordChange).catch((thrown: unknown) => {
    if (thrown === ADDRESS_CHANGED) return false;
    if (thrown instanceof AuthError && thrown.error === 'temporarily_unavailable') return 'failed';
    throw thrown;
  });
  if (outcome === 'failed') return { reason: 'not-changed' };
  if (!outcome) return { reason: 'expired' };
  await endFormerAccess(deps, user, { verifiedChallenge, isByLink });
  // Callers who became known by the old password are strangers again.
  await deps.callers.forgetAllOf(user.id);
  await deps.attempts.unlock(connection.name, user, caller);
  const application = clientId === undefined ? undefined : await deps.config.client(clientId);
  deps.events.record({
    type: databaseEvents.scp,
    user_id: user.id,
    connection: connection.name,
    ip: caller.ip,
    ...(user.email !== undefined && { user_name: user.email }),
    ...(clientId !== undefined && { client_id: clientId }),
  });
  if (user.email !== undefined) {
    await deps.messages.post('password_changed', {
      to: user.email,
      application,
      connection,
      user,
      languages,
      ip: caller.ip,
    });
  }
  return undefined;
}

/**
 * Ends everything the old password gave access to, and then verifies the address that the link was mailed to. The order
 * matters: whether second factors are removed depends on whether the address was verified before.
 */
async function endFormerAccess(
  deps: ResetDependencies,
  user: User,
  { verifiedChallenge, isByLink }: { verifiedChallenge: VerifiedChallenge; isByLink: boolean },
): Promise<void> {
  const { id: userId, email } = user;
  await deps.challenges.revokeAllOf(userId);
  await deps.endPending(userId);
  // An account without an address cannot have been made with somebody else's.
  const isProved = email === undefined || (await deps.users.get(userId))?.email_verified === true;
  const ticket = ticketOptions(verifiedChallenge);
  if (!isProved && isByLink && mayTakeOver(user, verifiedChallenge)) await deps.detachLinked(userId);
  if (!isProved && isByLink) await deps.endAll(userId);
  else if (deps.config.settings().tenant.flags.keep_sessions_on_password_reset !== true) {
    await deps.endSessions(userId);
  }
  if (email === undefined || !isForOwnAddress(user, verifiedChallenge)) return;
  // A mailed link proves its address. An application may hand out a ticket in any way, so it says whether the ticket does.
  // docs/understand/decisions/passwords-protection.md#a-new-password-that-a-logged-in-user-requested-removes-nothing-else
  if (ticket === undefined && !isProved) await tryVerifyInCustomDatabase(deps, userId, email);
  if (ticket === undefined) await deps.users.proveEmail(userId, email);
  else if (ticket.marksVerified) await deps.users.confirmEmail(userId, email);
}

/** Marks the address as verified in custom databases. A failure is in the log; the address is verified here all the same. */
async function tryVerifyInCustomDatabase(
  deps: ResetDependencies,
  userId: string,
  email: string,
): Promise<void> {
  try {
    await verifyInCustomDatabase(deps, userId, email);
  } catch (thrown) {
    if (!(thrown instanceof AuthError)) throw thrown;
  }
}

// An account may have been created with somebody else's e-mail address. When the owner of that address sets a password by a
// mailed link, whoever created the account loses access to it.
// docs/understand/decisions/passwords-protection.md#if-a-reset-proves-the-address-for-the-first-time-it-removes-what-others-left

/** Returns whether a link was issued for the user's own address, rather than for that of a linked identity. */
function isForOwnAddress({ email }: User, verifiedChallenge: VerifiedChallenge): boolean {
  return verifiedChallenge.data.email === email;
}

/**
 * Returns whether the user of a link may be the owner of the address without having created the account. Not so for a ticket
 * that does not verify the address: whoever created the account may have received it.
 */
function mayTakeOver(user: User, verifiedChallenge: VerifiedChallenge): boolean {
  return (
    isForOwnAddress(user, verifiedChallenge) && ticketOptions(verifiedChallenge)?.marksVerified !== false
  );
}

/**
 * Returns the write that marks the phone number of a user with an unverified address as unverified. The number may belong to
 * whoever created the account, and codes are sent only to verified numbers. It is made in one batch with the new password,
 * which also ends a login by code that has begun.
 */
function unverifyNumber(userId: string): Write {
  return {
    collection: 'users',
    update: userId,
    change: (before) => {
      const isProved = before.email === undefined || before.email_verified;
      return isProved || before.phone_verified !== true ? before : { ...before, phone_verified: false };
    },
  };
}

/** Thrown within a batch, which then changes nothing, if the user's address has changed. */
const ADDRESS_CHANGED = new Error('the address has changed');

/**
 * Returns a write that throws {@link ADDRESS_CHANGED} if the user's e-mail address is no longer the given one. It is made in
 * one batch with the new password: otherwise the owner of the old address could set the password of an account whose address
 * was changed a moment before.
 */
function unlessAddressChanged({ id, email }: User): Write {
  return {
    collection: 'users',
    update: id,
    change: (before) => {
      if (before.email !== email) throw ADDRESS_CHANGED;
      return before;
    },
  };
}
