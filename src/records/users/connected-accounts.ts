// Accounts at other providers that users have connected so that applications can get tokens of them; users do not log
// in with them.

import type { Stored } from '../base/record.ts';
import type { UpstreamGrant } from '../connections/identities.ts';

/**
 * One account. `id` is a hash of the user and of the provider's id for the account, so connecting it again gives the
 * same id.
 */
export interface ConnectedAccountRecord extends Stored {
  user_id: string;
  /** The connection's name and id. With another id, a connection of the same name is another provider. */
  connection: string;
  connection_id: string;
  strategy: string;
  /** The granted scopes; if the provider does not return them, the requested ones. */
  scopes: string[];
  /** The tokens from the provider; stored sealed. */
  grant: UpstreamGrant;
  /** ISO 8601. */
  created_at: string;
}
