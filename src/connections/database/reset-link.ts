// Sends password reset links, limited in number and without revealing who has an account.
import type { Messages } from '../../delivery/messages.ts';
import type { Languages } from '../../http/languages.ts';
import { askersOf, type Caller, type KnownCallers } from '../../protection/callers.ts';
import type { Challenges } from '../../protection/challenges.ts';
import type { RateLimits } from '../../protection/rate-limit.ts';
import type { Client, Connection, Organization } from '../../records/collections.ts';
import { normalizeEmail } from '../../records/email.ts';
import type { Background } from '../../runtime/background.ts';
import type { Config } from '../../tenant/config.ts';
import type { Events } from '../../tenant/events.ts';
import type { Users } from '../../users/users.ts';

/** The challenge of a reset, and where the link of the mail leads. */
export const PASSWORD_RESET = { purpose: 'password_reset', path: '/u/reset-password' } as const;

export interface ResetLinkDependencies {
  baseUrl: string;
  config: Config;
  users: Users;
  challenges: Challenges;
  callers: KnownCallers;
  messages: Messages;
  events: Events;
  background: Background;
  rateLimits: RateLimits;
}

interface ResetRequest {
  email: string;
  connection: Connection;
  client: Client | undefined;
  organization: Organization | undefined;
  languages: Languages;
  caller: Caller;
}

/**
 * Sends a reset link to the user with that address, if there is one, in the background: answer and time are the same for
 * an unknown address.
 */
export function requestReset(deps: ResetLinkDependencies, request: ResetRequest): void {
  deps.background.run('a password reset', () => sendLink(deps, request));
}

async function sendLink(deps: ResetLinkDependencies, request: ResetRequest): Promise<void> {
  const { connection, client, organization, languages, caller } = request;
  const { ip } = caller;
  const email = normalizeEmail(request.email);
  const user = email === undefined ? undefined : await deps.users.findInConnection(connection, email);
  const seen = {
    user_name: request.email,
    connection: connection.name,
    ip,
    ...(client && { client_id: client.client_id }),
  };
  if (email === undefined || user === undefined) {
    deps.events.record({ ...seen, type: 'fcpr', description: 'there is no such user' });
    return;
  }
  const { enabled, urlLifetimeInSeconds: ttlSeconds } = deps.messages.template('reset_email');
  const refused = (description: string) =>
    deps.events.record({ ...seen, type: 'fcpr', user_id: user.id, description });
  if (!enabled) return refused('reset_email is not enabled');
  // Limits the mails to a user, silently, wherever the requests come from.
  const account = `${connection.name}\n${user.id}`;
  if (!(await hasRoom(deps, account, user.id, caller))) return refused('too many mails');
  const { secret, revoke } = await deps.challenges.issueTicket({
    purpose: PASSWORD_RESET.purpose,
    subject: user.id,
    // A newer link replaces only the same caller's; the first one used ends all.
    askers: askersOf(caller),
    userId: user.id,
    ttlSeconds,
    data: {
      email,
      connection: connection.name,
      ...(client && { clientId: client.client_id }),
      ...(organization && { organization: organization.name }),
    },
  });
  const url = `${deps.baseUrl}${PASSWORD_RESET.path}?ticket=${secret}`;
  const notice = { to: email, application: client, connection, organization, user, url, languages, ip };
  deps.messages.post('reset_email', notice, { revoke, ttlSeconds });
}

/** Strangers share one limit; known callers have their own. */
async function hasRoom(
  { rateLimits, callers }: ResetLinkDependencies,
  account: string,
  userId: string,
  caller: Caller,
): Promise<boolean> {
  const known = await callers.recognize(userId, caller);
  return rateLimits.spend(
    'changePasswordDestination',
    known === undefined ? account : `${account}\n${known.room}`,
  );
}
