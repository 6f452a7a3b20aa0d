// Who requests a change of users, for the tenant's own code.

import type { Organization } from '../records/collections.ts';

/** The request that leads to a change, for the events of the tenant's own code. No decision depends on it. */
export interface Asker {
  clientId?: string | undefined;
  /** The `request` member of an action's event. */
  request?: Readonly<Record<string, unknown>> | undefined;
  organization?: Organization | undefined;
  /** The `transaction` member of an action's event: the authorization request that waits. */
  transaction?: Readonly<Record<string, unknown>> | undefined;
  /** The anonymous session of the request, as members of an action's event. */
  visitor?: Readonly<Record<string, unknown>> | undefined;
}
