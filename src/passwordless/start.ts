// Starting a passwordless login: a code or a link is made and sent.
import { DeliveryError, type MessageKind, type Messages, type Notice } from '../delivery/messages.ts';
import { AuthError } from '../http/errors.ts';
import type { Challenges, Issued, NewChallenge } from '../protection/challenges.ts';
import type { Client, Organization } from '../tenant/directory.ts';
import type { User, Users } from '../users/users.ts';
import type { PasswordlessConnection } from './connection.ts';

export interface StartDependencies {
  users: Users;
  challenges: Challenges;
  messages: Messages;
}

/** The challenge of a passwordless login. */
export const PURPOSE = 'passwordless';

export interface Start {
  client: Client;
  connection: PasswordlessConnection;
  /** Normalised. */
  address: string;
  /** Makes a link's address of its secret; a code is sent where there is none. */
  link?: (secret: string) => string;
  /** A fingerprint of the browser that asked, which may use the link without being asked. */
  browser?: string | undefined;
  organization?: Organization | undefined;
  languages?: string | undefined;
  ip: string;
}

/** What a passwordless challenge is about: one application's login with one address. */
export function subjectOf(clientId: string, connection: PasswordlessConnection, address: string): string {
  return `${connection.record.name}\n${address}\n${clientId}`;
}

/**
 * Makes a code or link and sends it; what was sent before for the same application and address is dead.
 * On a connection without sign-up an unknown address gets nothing, and whoever asks cannot tell.
 * @throws AuthError 400 when the provider says the address is none, 503 when it cannot be reached; the code is
 *   then not valid.
 */
export async function start(deps: StartDependencies, request: Start): Promise<void> {
  const { client, connection, address } = request;
  const { record, channel, digits, ttlSeconds, disableSignup } = connection;
  const user = await deps.users.findByAddress({ connection: record.name, channel, address });
  const challenge: NewChallenge = {
    purpose: PURPOSE,
    subject: subjectOf(client.client_id, connection, address),
    ttlSeconds,
    userId: user?.id,
    ...(request.browser === undefined ? {} : { data: { browser: request.browser } }),
  };
  if (user === undefined && disableSignup) return deps.challenges.issueDecoy(challenge);
  const issued =
    request.link === undefined
      ? await deps.challenges.issueCode({ ...challenge, digits })
      : await deps.challenges.issueTicket(challenge);
  const carried = { revoke: issued.revoke, ttlSeconds };
  // Where the provider's time would tell who has an account, nobody waits for it.
  if (disableSignup) return deps.messages.post(...message(request, issued, user), carried);
  try {
    await deps.messages.send(...message(request, issued, user), carried);
  } catch (thrown) {
    throw thrown instanceof DeliveryError ? refusalOf(thrown) : thrown;
  }
}

function message(
  { client, connection, address, link, organization, languages, ip }: Start,
  { secret }: Issued,
  user: User | undefined,
): [MessageKind, Notice] {
  const notice = {
    to: address,
    application: client,
    connection: connection.record,
    organization,
    user,
    languages,
    ip,
    ...(link === undefined ? { code: secret } : { url: link(secret) }),
  };
  return [connection.channel === 'email' ? 'passwordless_email' : 'passwordless_sms', notice];
}

function refusalOf(error: DeliveryError): AuthError {
  const { code, providerCode, message: text } = error;
  if (code === 'invalid-number') {
    const suffix = providerCode === undefined ? '' : ` (Code: ${providerCode})`;
    return new AuthError(400, 'sms_provider_error', `${text}${suffix}`, { cause: error });
  }
  return new AuthError(
    503,
    'temporarily_unavailable',
    'The message could not be sent. Try again in a few minutes.',
    { cause: error },
  );
}
