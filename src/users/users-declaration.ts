// The log events and collections of users.
// docs/understand/decisions/operating.md#a-login-gives-one-event-when-its-outcome-is-known

import { eventTypesOf } from '../records/base/log-events.ts';
import type { Declaration } from '../records/declaration.ts';

export const userEvents = eventTypesOf({
  fp: 'A password or code was wrong.',
  ss: 'Somebody signed up.',
  fs: 'A sign-up was refused; the description says why.',
  identifier_reassignable:
    'The users of a connection are identified by a name, which somebody else may get later; recorded once after each start.',
  metadata_refused: 'Metadata of a user was not stored, because it would be larger than it may be.',
});

export const users: Declaration = {
  name: 'users',
  events: userEvents,
  collections: ['users', 'identities', 'credentials', 'connectedAccounts'],
};
