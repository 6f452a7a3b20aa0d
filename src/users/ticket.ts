// A link to the account pages that an application hands to a user itself, as features tell each other of one.
import type { Connection } from '../records/collections.ts';
import type { User } from './user.ts';

/** A ticket to be made. */
export interface NewTicket {
  user: User;
  connection: Connection;
  ttlSeconds: number;
  /** Where its page leads when all is done. */
  resultUrl?: string | undefined;
  clientId?: string | undefined;
  /** The id of one. */
  organization?: string | undefined;
  /** Whether the address is told to the page at `resultUrl`. */
  includeEmail: boolean;
  /** Whether who uses it has proved the address: it was mailed there. */
  marksVerified: boolean;
  /** The id of the session of the user's in which they have asked for it; none of a ticket that others made. */
  session?: string;
}
