// Who asks for a change of users, in words that the tenant's own code is told.

import type { Organization } from '../records/collections.ts';

/** By what request something is asked for, for the tenant's code: nothing is decided by it. */
export interface Asker {
  clientId?: string | undefined;
  /** As actions are told of it. */
  request?: Readonly<Record<string, unknown>> | undefined;
  /** Whom it is asked for at. */
  organization?: Organization | undefined;
  /** The authorization request that waits, as actions are told of it. */
  transaction?: Readonly<Record<string, unknown>> | undefined;
  /** The anonymous session that the request came with, as members of the event. */
  visitor?: Readonly<Record<string, unknown>> | undefined;
}
