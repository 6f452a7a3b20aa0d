// What the tenant's own code has to say of new users and new passwords: asked before a user is made, told afterwards. It
// stands around what makes users and sets passwords, so that no way to either goes past it.
import { AuthError } from '../http/errors.ts';
import type { Write } from '../store/contract.ts';
import type { Asker } from './asker.ts';
import type { Profile } from './create.ts';
import { homeOf, primaryIdentity } from './identities.ts';
import type { User } from './user.ts';
import type { Users } from './users.ts';

/** A user who is about to be made. */
interface Registrant {
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
  /** Who is told of a user who is about to be made, if anybody is. @param connection its name. */
  after(connection: string, asker: Asker): Telling | undefined;
  /** Who is told of a password that is about to be set. @param connection the name of the one that it is for. */
  passwordSet(connection: string, asker: Asker): Telling | undefined;
}

/** What is to be told, and is not lost: it is kept from the moment in which it has happened. */
interface Telling {
  /** The write that keeps it, to be made with what it tells of. Only the last of several counts. */
  write(user: User): Write;
  /** It has happened: tells of it, and keeps it first where no write of before did. */
  done(user: User): Promise<void>;
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
      const { identity, profile, asker = {} } = newUser;
      const { connection, addresses } = identity;
      const metadata = await registration.before(
        { connection, profile: { ...addresses, ...profile } },
        asker,
      );
      const after = registration.after(connection, asker);
      const made = await users.create({ ...newUser, profile: { ...profile, ...metadata }, ...alsoOf(after) });
      if ('user' in made) await after?.done(made.user);
      return made;
    },
    whoProved: async (proved) => {
      const { connection, kind, address, mayCreate, asker = {} } = proved;
      const seen = { user: proved.seen === undefined ? await users.findByAddress(proved) : proved.seen.user };
      if (seen.user !== undefined || !mayCreate) return users.whoProved({ ...proved, seen });
      const profile = await registration.before({ connection, profile: { [kind]: address } }, asker);
      const after = registration.after(connection, asker);
      const found = await users.whoProved({ ...proved, seen, profile, ...alsoOf(after) });
      if (found?.isNew === true) await after?.done(found.user);
      return found;
    },
    setPassword: async (userId, password, how = {}) => {
      const { home = userId, asker = {} } = how;
      const [user, identities] = await Promise.all([users.get(userId), users.identitiesOf(userId)]);
      const identity = identities.find((one) => homeOf(one) === home) ?? primaryIdentity(identities);
      const told = user && registration.passwordSet(identity?.connection ?? '', asker);
      const also = user === undefined || told === undefined ? [] : [told.write(user)];
      const isSet = await users.setPassword(userId, password, {
        ...how,
        also: [...also, ...(how.also ?? [])],
      });
      if (isSet && user !== undefined) await told?.done(user);
      return isSet;
    },
  };
}

const alsoOf = (after: Telling | undefined) => after && { also: (user: User) => [after.write(user)] };
