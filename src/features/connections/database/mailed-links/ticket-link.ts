// Links to the account pages that an application requests and delivers itself, instead of a mail.
import type { Challenges, VerifiedChallenge } from '../../../../capabilities/protection/challenges.ts';
import { loginAddressOf } from '../../../../records/clients/login-address.ts';
import type { AddressKind } from '../../../../records/connections/identities.ts';
import type { Random } from '../../../../runtime/secrets.ts';
import type { Config } from '../../../../tenant/config.ts';
import type { NewTicket } from '../../../../users/ticket.ts';
import type { User } from '../../../../users/user.ts';
import type { Users } from '../../../../users/users.ts';
import { EMAIL_VERIFICATION } from '../base/verification-link.ts';
import { PASSWORD_RESET } from './reset-link.ts';

/** Returns the identifier that a ticket names its user by: the e-mail address, else the username, else the phone number. */
export function mainIdentifier({
  email,
  username,
  phone_number,
}: Pick<User, AddressKind>): Partial<Record<AddressKind, string | undefined>> {
  if (email !== undefined) return { email };
  return username === undefined ? { phone_number } : { username };
}

const PAGES = { reset: PASSWORD_RESET, verification: EMAIL_VERIFICATION } as const;

/** Issues a ticket that can be used once, and returns its link. Mailed links and other tickets stay valid. */
export async function issueTicketLink(
  {
    baseUrl,
    challenges,
    random,
    users,
  }: { baseUrl: string; challenges: Challenges; random: Random; users: Pick<Users, 'credentialVersion'> },
  kind: keyof typeof PAGES,
  ticket: NewTicket,
): Promise<string> {
  const { user, connection, ttlSeconds, resultUrl, clientId, organization, includeEmail, marksVerified } =
    ticket;
  const { session } = ticket;
  const { purpose, path } = PAGES[kind];
  const { secret } = await challenges.issueTicket({
    purpose,
    subject: user.id,
    askers: [`ticket:${random(16).toString('hex')}`],
    userId: user.id,
    ...(session !== undefined && { session }),
    ttlSeconds,
    data: {
      ...mainIdentifier(user),
      connection: connection.name,
      credentialVersion: await users.credentialVersion(user.id),
      ...(clientId !== undefined && { clientId }),
      ...(organization !== undefined && { organization }),
      ticket: {
        ...(resultUrl !== undefined && { resultUrl }),
        includeEmail,
        marksVerified,
        ...(session !== undefined && { isOwn: true }),
      },
    },
  });
  return `${baseUrl}${path}?ticket=${secret}`;
}

interface TicketOptions {
  resultUrl?: string;
  includeEmail: boolean;
  marksVerified: boolean;
  /** Whether the user requested it while logged in; it does not take over the account then. */
  isOwn?: boolean;
}

/** Returns the options of a ticket; undefined for a link that was mailed. */
export function ticketOptions({ data }: VerifiedChallenge): TicketOptions | undefined {
  return data.ticket as TicketOptions | undefined;
}

/** Returns the URL that a ticket's page redirects to: its own, else the application's `initiate_login_uri`. */
export async function ticketTarget(
  config: Pick<Config, 'client' | 'organization'>,
  verifiedChallenge: VerifiedChallenge,
): Promise<{ url: string; includeEmail: boolean } | undefined> {
  const options = ticketOptions(verifiedChallenge);
  if (options === undefined) return undefined;
  const { clientId, organization: id } = verifiedChallenge.data;
  const client = typeof clientId === 'string' ? await config.client(clientId) : undefined;
  const organization = typeof id === 'string' ? await config.organization(id) : undefined;
  const url = options.resultUrl ?? (client && loginAddressOf(client, organization));
  return url === undefined ? undefined : { url, includeEmail: options.includeEmail };
}
