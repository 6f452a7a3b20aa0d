// Sets a new password by a mailed link.
import type { Messages } from '../../delivery/messages.ts';
import { AuthError } from '../../http/errors.ts';
import type { Languages } from '../../http/languages.ts';
import type { Attempts } from '../../protection/attempts.ts';
import type { Caller, KnownCallers } from '../../protection/callers.ts';
import type { Challenges, Met } from '../../protection/challenges.ts';
import type { Connection, Organization } from '../../records/collections.ts';
import { databaseOptions, passwordUse } from '../../records/database-options.ts';
import type { DatabaseOptions } from '../../records/tenant.ts';
import type { Config } from '../../tenant/config.ts';
import type { Events } from '../../tenant/events.ts';
import type { Asker } from '../../users/asker.ts';
import { homeOf } from '../../users/identities.ts';
import { newPasswordRefusal, type PasswordRefusal } from '../../users/signup.ts';
import type { User } from '../../users/user.ts';
import type { Users } from '../../users/users.ts';
import { type VerifyElsewhereDependencies, verifyElsewhere } from './elsewhere.ts';
import { PASSWORD_RESET } from './reset-link.ts';
import { isForOwn, MOVED, mayTakeOver, unlessMoved, withoutNumber } from './takeover.ts';
import { namedBy, ticketOptions } from './ticket-link.ts';

export interface ResetDependencies extends VerifyElsewhereDependencies {
  config: Config;
  users: Users;
  challenges: Challenges;
  attempts: Attempts;
  callers: KnownCallers;
  messages: Messages;
  events: Events;
  /** Ends pending enrolments and approvals, and forgets remembered browsers. */
  endPending(userId: string): Promise<void>;
  /** Ends all sessions of a user, with their tokens. */
  endSessions(userId: string): Promise<void>;
  /** The same, and removes second factors and consents. */
  endAll(userId: string): Promise<void>;
  /** Takes linked identities apart. */
  detachLinked(userId: string): Promise<void>;
}

/** A reset that a link allows. */
export interface OpenReset {
  user: User;
  /** Whose password it is: the user's, or that of an identity that was linked to them. */
  home: string;
  connection: Connection;
  options: DatabaseOptions;
  met: Met;
}

/** The reset of a valid link: its user still exists, with the address that it was sent to, or the name that it is for. */
export async function openReset(
  deps: ResetDependencies,
  ticket: string,
  purpose: string = PASSWORD_RESET.purpose,
): Promise<OpenReset | undefined> {
  const met = await deps.challenges.peekTicket(purpose, ticket);
  if (met?.userId === undefined) return undefined;
  const user = await deps.users.get(met.userId);
  const connection = await deps.config.connection(String(met.data.connection));
  // Passwords may have been switched off since.
  if (user === undefined || connection === undefined || !passwordUse(connection).logsIn) return undefined;
  // By the identity, not the user: one that was linked has an address and a password of its own.
  const identity = (await deps.users.identitiesOf(user.id)).find(
    (one) =>
      one.connection === connection.name &&
      Object.entries(namedBy(one)).every(([kind, name]) => name !== undefined && met.data[kind] === name),
  );
  if (identity === undefined) return undefined;
  // A link is good only while the password is the one that it was made for.
  const version = versionOf(met);
  if (version !== undefined && (await deps.users.credentialVersion(user.id)) !== version) return undefined;
  return { user, home: homeOf(identity), connection, options: databaseOptions(connection), met };
}

/** The version of the credential that a link was made for; undefined for one that an older release made. */
function versionOf({ data: { credentialVersion } }: Met): number | undefined {
  return typeof credentialVersion === 'number' ? credentialVersion : undefined;
}

/** Records a refused reset. */
export function tellRefusedReset(
  { events }: Pick<ResetDependencies, 'events'>,
  open: OpenReset | undefined,
  { reason, ip }: { reason: ResetRefusal['reason']; ip: string },
): void {
  const { user, connection } = open ?? {};
  events.record({
    type: 'fcp',
    ip,
    description: reason,
    ...(connection && { connection: connection.name }),
    ...(user && { user_id: user.id }),
    ...(user?.email !== undefined && { user_name: user.email }),
  });
}

/** A new password, as the form has it. */
interface NewPassword {
  ticket: string;
  /** What the ticket was made for, where it is no link. */
  purpose?: string;
  password: string;
  caller: Caller;
  languages: Languages;
  asker: Asker;
}

/** Why a new password is refused. */
export type ResetRefusal =
  | PasswordRefusal
  | { reason: 'expired' }
  /** It could not be set where it is kept. */
  | { reason: 'not-changed' };

/**
 * Sets the new password and consumes the link. Ends the user's sessions and tokens (unless the tenant keeps them), other
 * links and pending logins, and informs the user by mail. If the address was never verified, whoever set the old password
 * may not be its owner: then their second factors and consents are removed, too, and linked identities taken apart.
 * @returns the refusal; undefined when done.
 */
export async function resetPassword(
  deps: ResetDependencies,
  { user, home, connection, options, met }: OpenReset,
  { ticket, purpose = PASSWORD_RESET.purpose, password, caller, languages, asker }: NewPassword,
): Promise<ResetRefusal | undefined> {
  const refusal = await newPasswordRefusal(deps.users, options, password, { user, home });
  if (refusal !== undefined) return refusal;
  if ((await deps.challenges.spendTicket(purpose, ticket)) === undefined) return { reason: 'expired' };
  const clientId = typeof met.data.clientId === 'string' ? met.data.clientId : undefined;
  // Whoever asked for it by a login takes nothing over: what they have stays theirs.
  const isByLink = purpose === PASSWORD_RESET.purpose && ticketOptions(met)?.isOwn !== true;
  const isTakenOver = isByLink && mayTakeOver(user, met);
  const also = [unlessMoved(user), ...(isTakenOver ? [withoutNumber(user.id)] : [])];
  // Of several links that are used at one moment the first alone counts: who comes second was overtaken.
  const how = { home, asker: { ...asker, clientId }, version: versionOf(met), also };
  const outcome = await deps.users.setPassword(user.id, password, how).catch((thrown: unknown) => {
    if (thrown === MOVED) return false;
    if (thrown instanceof AuthError && thrown.error === 'temporarily_unavailable') return 'failed';
    throw thrown;
  });
  if (outcome === 'failed') return { reason: 'not-changed' };
  if (!outcome) return { reason: 'expired' };
  await endWhatWasBefore(deps, user, { met, isByLink });
  // Callers known by the old password become strangers.
  await deps.callers.forgetAllOf(user.id);
  await deps.attempts.unlock(connection.name, user, caller);
  const application = clientId === undefined ? undefined : await deps.config.client(clientId);
  deps.events.record({
    type: 'scp',
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

/** Order matters: the address is verified only after everything else has ended. */
async function endWhatWasBefore(
  deps: ResetDependencies,
  user: User,
  { met, isByLink }: { met: Met; isByLink: boolean },
): Promise<void> {
  const { id: userId, email } = user;
  await deps.challenges.revokeAllOf(userId);
  await deps.endPending(userId);
  // Where there is no address, it is nobody else's; and who is logged in takes nothing over.
  const isProved = email === undefined || (await deps.users.get(userId))?.email_verified === true;
  const ticket = ticketOptions(met);
  if (!isProved && isByLink && mayTakeOver(user, met)) await deps.detachLinked(userId);
  if (!isProved && isByLink) await deps.endAll(userId);
  else if (deps.config.settings().tenant.flags.keep_sessions_on_password_reset !== true) {
    await deps.endSessions(userId);
  }
  if (email === undefined || !isForOwn(user, met)) return;
  // The link was mailed to this address, which verifies it; a ticket may have come by any way, and its maker says.
  if (ticket === undefined && !isProved) await tellProved(deps, userId, email);
  if (ticket === undefined) await deps.users.proveEmail(userId, email);
  else if (ticket.marksVerified) await deps.users.confirmEmail(userId, email);
}

/** Where the user is kept elsewhere; what fails is in the log, and the address is proved all the same. */
async function tellProved(deps: ResetDependencies, userId: string, email: string): Promise<void> {
  try {
    await verifyElsewhere(deps, userId, email);
  } catch (thrown) {
    if (!(thrown instanceof AuthError)) throw thrown;
  }
}

/**
 * Where a link's page leads, with the result; undefined when the tenant configures nothing.
 * @param target a ticket's own, before the tenant's.
 */
export function resultUrl(
  deps: Pick<ResetDependencies, 'messages'>,
  kind: 'reset_email' | 'verify_email',
  outcome: {
    success: boolean;
    message: string;
    email: string | undefined;
    organization?: Organization | undefined;
  },
  target?: { url: string; includeEmail: boolean },
): string | undefined {
  const template = deps.messages.template(kind);
  const configured = target?.url ?? template.resultUrl;
  const includeEmailInRedirect = target?.includeEmail ?? template.includeEmailInRedirect;
  const url = configured === undefined ? null : URL.parse(configured);
  if (url === null) return undefined;
  const { success, message, email, organization } = outcome;
  if (email !== undefined && includeEmailInRedirect) url.searchParams.set('email', email);
  url.searchParams.set('success', String(success));
  url.searchParams.set('message', message);
  if (organization !== undefined) {
    url.searchParams.set('organization_id', organization.id);
    url.searchParams.set('organization_name', organization.name);
  }
  return url.href;
}
