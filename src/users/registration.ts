// What the tenant's own code has to say of new users and new passwords: asked before a user is made, told afterwards. It
// stands around what makes users and sets passwords, so that no way to either goes past it.
import { AuthError } from '../http/errors.ts';
import type { Asker } from './asker.ts';
import type { Profile } from './create.ts';
import { homeOf, primaryIdentity } from './identities.ts';
import type { User } from './user.ts';
import type { Users } from './users.ts';

/** A user who is about to be made. */
export interface Registrant {
  /** The connection's name. */
  connection: string;
  /** What is known of them. */
  profile: Profile;
}

export interface Registration {
  /**
   * Asked before a user is made, and before it is known whether the address is somebody's: else the answer would tell.
   * @returns the user's metadata, where it was changed. @throws RegistrationRefused
   */
  before(registrant: Registrant, asker: Asker): Promise<Pick<Profile, 'user_metadata' | 'app_metadata'>>;
  /** Told of a user who was made. @param connection its name. */
  after(user: User, connection: string, asker: Asker): void;
  /** Told of a password that was set. @param connection the name of the one that it is for. */
  passwordSet(user: User, connection: string, asker: Asker): void;
}

/** The tenant's own code refuses a user. */
export class RegistrationRefused extends AuthError {
  /** What the user is told in the words of that code; undefined where it has none. */
  readonly said: string | undefined;

  constructor(said: string | undefined) {
    super(403, 'access_denied', said ?? 'The sign-up was refused.');
    this.name = 'RegistrationRefused';
    this.said = said;
  }
}

/** Users of whom the tenant's code is asked and told. Those of imports, of older databases and of providers are made else. */
export function withRegistration(users: Users, registration: Registration): Users {
  return {
    ...users,
    create: async (newUser) => {
      const { connection, email, username, profile, asker = {} } = newUser;
      const known = { email, ...(username !== undefined && { username }), ...profile };
      const metadata = await registration.before({ connection, profile: known }, asker);
      const made = await users.create({ ...newUser, profile: { ...profile, ...metadata } });
      if ('user' in made) registration.after(made.user, connection, asker);
      return made;
    },
    make: async (newUser) => {
      const { identity, profile, asker = {} } = newUser;
      const { connection, addresses } = identity;
      const metadata = await registration.before(
        { connection, profile: { ...addresses, ...profile } },
        asker,
      );
      const made = await users.make({ ...newUser, profile: { ...profile, ...metadata } });
      if ('user' in made) registration.after(made.user, connection, asker);
      return made;
    },
    whoProved: async (proved) => {
      const { connection, kind, address, mayCreate, asker = {} } = proved;
      const seen = { user: proved.seen === undefined ? await users.findByAddress(proved) : proved.seen.user };
      if (seen.user !== undefined || !mayCreate) return users.whoProved({ ...proved, seen });
      const profile = await registration.before({ connection, profile: { [kind]: address } }, asker);
      const found = await users.whoProved({ ...proved, seen, profile });
      if (found?.isNew === true) registration.after(found.user, connection, asker);
      return found;
    },
    setPassword: async (userId, password, home = userId, asker = {}) => {
      await users.setPassword(userId, password, home);
      const [user, identities] = await Promise.all([users.get(userId), users.identitiesOf(userId)]);
      const identity = identities.find((one) => homeOf(one) === home) ?? primaryIdentity(identities);
      if (user !== undefined) registration.passwordSet(user, identity?.connection ?? '', asker);
    },
  };
}
