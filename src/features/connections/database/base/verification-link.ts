// Sends the link that verifies an e-mail address after sign-up.
import type { Messages } from '../../../../capabilities/delivery/delivery-messages.ts';
import type { Challenges } from '../../../../capabilities/protection/challenges.ts';
import type { Languages } from '../../../../http/languages.ts';
import type { Client, Connection } from '../../../../records/collections.ts';
import { attributesOf } from '../../../../records/connections/database-attributes.ts';
import { databaseOptions } from '../../../../records/database-options.ts';
import type { User } from '../../../../users/user.ts';

/** The purpose of an address's challenge, and the path of its link. */
export const EMAIL_VERIFICATION = { purpose: 'email_verification', path: '/u/email-verification' } as const;

export interface VerificationDependencies {
  baseUrl: string;
  challenges: Challenges;
  messages: Messages;
}

interface VerificationRequest {
  user: User;
  connection: Connection;
  client: Client | undefined;
  languages: Languages;
  ip: string;
}

/** Mails a new user the link that verifies their address, unless the connection verifies no addresses at sign-up. */
export async function askNewUserToVerify(
  deps: VerificationDependencies,
  request: VerificationRequest,
): Promise<void> {
  const { email } = attributesOf(databaseOptions(request.connection));
  if (email.verification !== 'none') await askToVerify(deps, request);
}

/** Mails the link that verifies an address, unless the tenant has switched that mail off or the address is verified. */
export async function askToVerify(
  deps: VerificationDependencies,
  request: VerificationRequest,
): Promise<void> {
  const { user, connection, client, languages, ip } = request;
  const { enabled, urlLifetimeInSeconds: ttlSeconds } = deps.messages.template('verify_email');
  if (!enabled || user.email === undefined || user.email_verified) return;
  const { purpose, path } = EMAIL_VERIFICATION;
  const { secret, ref, save } = deps.challenges.prepareTicket({
    purpose,
    subject: user.id,
    userId: user.id,
    ttlSeconds,
    data: { email: user.email, connection: connection.name, ...(client && { clientId: client.client_id }) },
  });
  const message = deps.messages.prepare(
    'verify_email',
    {
      to: user.email,
      application: client,
      connection,
      user,
      url: `${deps.baseUrl}${path}?ticket=${secret}`,
      languages,
      ip,
    },
    { ref, ttlSeconds },
  );
  await save([message.write]);
  message.post();
}
