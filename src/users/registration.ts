// Runs the tenant's own code for new users and new passwords: before a user is created, and after a user was created or a
// password was set. This wraps the `users` that all features get, so that no feature bypasses it.
import { AuthError } from '../http/errors.ts';
import type { Write } from '../store/contract.ts';
import type { Asker } from './asker.ts';
import { originalUserId, primaryIdentity } from './changes.ts';
import type { Profile } from './create.ts';
import type { User } from './user.ts';
import type { Users } from './users.ts';

interface Registrant {
  /** The connection's name. */
  connection: string;
  profile: Profile;
}

export interface Registration {
  /**
   * Runs before a user is created, and before it is known whether the address is taken; otherwise a refusal would reveal that.
   * @returns the metadata that the code set. @throws RegistrationRefused
   */
  before(registrant: Registrant, asker: Asker): Promise<Pick<Profile, 'user_metadata' | 'app_metadata'>>;
  /** Returns the notification of a new user; undefined if no code is to be notified. @param connection its name. */
  after(connection: string, asker: Asker): Notification | undefined;
  /** Returns the notification of a new password; undefined if no code is to be notified. @param connection its name. */
  passwordSet(connection: string, asker: Asker): Notification | undefined;
}

/** A notification of the tenant's own code, which is stored in the batch of the change, so that it is not lost. */
interface Notification {
  /** Returns the write that stores it, for the batch of the change. If it is called again, the last call counts. */
  write(user: User): Write;
  /** Delivers it after the change, and stores it first if the batch did not. */
  deliver(user: User): Promise<void>;
}

/** The tenant's own code has refused a user. */
export class RegistrationRefused extends AuthError {
  /** The message of that code for the user, if it has one. */
  readonly userMessage: string | undefined;

  constructor(userMessage: string | undefined) {
    super(403, 'access_denied', userMessage ?? 'The sign-up was refused.');
    this.name = 'RegistrationRefused';
    this.userMessage = userMessage;
  }
}

/**
 * Returns `users` with the tenant's own code around `create`, `whoProved` and `setPassword`. Users of imports, custom databases
 * and upstream providers are created by other functions, without that code.
 */
export function withRegistration<U extends Users>(users: U, registration: Registration): U {
  return {
    ...users,
    create: async (newUser) => {
      const { identity, profile, asker = {} } = newUser;
      const { connection, addresses } = identity;
      const metadata = await registration.before(
        { connection, profile: { ...addresses, ...profile } },
        asker,
      );
      const after = registration.after(connection, asker);
      const created = await users.create({
        ...newUser,
        profile: { ...profile, ...metadata },
        also: (user) => [
          ...(newUser.also?.(user) ?? []),
          ...(after === undefined ? [] : [after.write(user)]),
        ],
      });
      if ('user' in created) await after?.deliver(created.user);
      return created;
    },
    whoProved: async (proved) => {
      const { connection, kind, address, mayCreate, asker = {} } = proved;
      const lookup = {
        user: proved.lookup === undefined ? await users.findByAddress(proved) : proved.lookup.user,
      };
      if (lookup.user !== undefined || !mayCreate) return users.whoProved({ ...proved, lookup });
      const profile = await registration.before({ connection, profile: { [kind]: address } }, asker);
      const after = registration.after(connection, asker);
      const found = await users.whoProved({ ...proved, lookup, profile, ...alsoOf(after) });
      if (found?.isNew === true) await after?.deliver(found.user);
      return found;
    },
    setPassword: async (userId, password, how = {}) => {
      const { home = userId, asker = {} } = how;
      const [user, identities] = await Promise.all([users.get(userId), users.identitiesOf(userId)]);
      const identity = identities.find((one) => originalUserId(one) === home) ?? primaryIdentity(identities);
      const notification = user && registration.passwordSet(identity?.connection ?? '', asker);
      const also = user === undefined || notification === undefined ? [] : [notification.write(user)];
      const isSet = await users.setPassword(userId, password, {
        ...how,
        also: [...also, ...(how.also ?? [])],
      });
      if (isSet && user !== undefined) await notification?.deliver(user);
      return isSet;
    },
  };
}

const alsoOf = (after: Notification | undefined) => after && { also: (user: User) => [after.write(user)] };
