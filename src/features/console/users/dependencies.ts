// The dependencies of the user pages.
import type { Connection } from '../../../records/collections.ts';
import type { ApiCallDependencies } from '../api-calls.ts';
import type { ConsolePageDependencies } from '../console-page.ts';
import type { LogDependencies } from '../log/console-log-routes.ts';

export interface UsersDependencies
  extends ConsolePageDependencies,
    ApiCallDependencies,
    Pick<LogDependencies, 'eventTypes'> {
  /**
   * Mails a user a link for setting a new password, as if the user had requested it. The Management API can only
   * create such a link.
   */
  mailReset(user: { email: string; connection: Connection; ip: string }): Promise<void>;
}
