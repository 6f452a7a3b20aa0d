// The type of a user, and the dependencies of functions on users.

import type { Frozen } from '../records/base/record.ts';
import type { UserRecord } from '../records/users/users.ts';
import type { Clock } from '../runtime/clock.ts';
import type { Random } from '../runtime/secrets.ts';
import type { Store } from '../store/contract.ts';
import type { Hasher } from './hashing.ts';

export type User = Frozen<UserRecord>;

export interface UsersDependencies {
  store: Store;
  hasher: Hasher;
  clock: Clock;
  random: Random;
}
