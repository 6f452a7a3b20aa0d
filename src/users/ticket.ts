// The type of a ticket: a link to the account pages that an application delivers to a user itself.
import type { Connection } from '../records/collections.ts';
import type { User } from './user.ts';

export interface NewTicket {
  user: User;
  connection: Connection;
  ttlSeconds: number;
  // docs/understand/decisions/passwords-protection.md#resulturl-gets-the-outcome-and-the-organization-of-the-request
  /** The URL that its page redirects to at the end. */
  resultUrl?: string | undefined;
  clientId?: string | undefined;
  /** The id of an organization. */
  organization?: string | undefined;
  /** Whether `resultUrl` gets the e-mail address in its query. */
  includeEmail: boolean;
  // docs/understand/decisions/passwords-protection.md#a-ticket-verifies-an-address-only-if-its-creator-says-so
  /** Whether using it verifies the address, because the application mails it there. */
  marksVerified: boolean;
  /** The id of the user's session, if the user requested the ticket themselves. */
  session?: string;
}
