// The input of a native social login.
import type { Client, Connection } from '../../../records/collections.ts';

export interface NativeToken {
  connection: Connection;
  client: Client;
  /** The code or token of the provider's SDK. */
  token: string;
  /** The user's profile as the app sends it, JSON; unverified. */
  userProfile: string | undefined;
}
