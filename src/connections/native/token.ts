// What an app on a phone logs in with.
import type { Client, Connection } from '../../records/collections.ts';

/** What an app got. */
export interface NativeToken {
  connection: Connection;
  client: Client;
  /** What proves who the user is. */
  token: string;
  /** What the app says of the user, JSON; nobody has proved it. */
  userProfile: string | undefined;
}
