// What the pages of users are given.
import type { Connection } from '../../records/collections.ts';
import type { AskDependencies } from '../ask.ts';
import type { LogDependencies } from '../log/routes.ts';
import type { ConsolePageDependencies } from '../page.ts';

export interface UsersDependencies
  extends ConsolePageDependencies,
    AskDependencies,
    Pick<LogDependencies, 'meanings'> {
  /**
   * Mails a user the link by which they set a new password, as their own request for one does: the Management API makes
   * such links, and mails none.
   */
  mailReset(user: { email: string; connection: Connection; ip: string }): Promise<void>;
}
