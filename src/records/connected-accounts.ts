// Accounts at other providers that users have connected: for their tokens, and no way to log in.
import type { UpstreamGrant } from './identities.ts';
import type { Stored } from './record.ts';

/** One account. `id` is a hash of whose it is and of what the provider calls it: connected again, it is the same. */
export interface ConnectedAccountRecord extends Stored {
  user_id: string;
  /** The connection's name, and its id: another one of the same name is another provider. */
  connection: string;
  connection_id: string;
  strategy: string;
  /** What the provider gave, or what it was asked for where it does not say. */
  scopes: string[];
  /** What the provider gave; stored sealed. */
  grant: UpstreamGrant;
  /** ISO 8601. */
  created_at: string;
}
