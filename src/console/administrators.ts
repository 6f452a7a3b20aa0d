// Who the administrators are, and what their roles are.
import {
  ADMINISTRATOR,
  ADMINISTRATORS,
  type AdministratorMember,
  type AdministratorRole,
  CONSOLE_DIRECTORY,
} from '../records/administrators.ts';
import type { Clock } from '../runtime/clock.ts';
import type { Store } from '../store/contract.ts';
import type { User } from '../users/user.ts';
import type { Users } from '../users/users.ts';

export interface AdministratorDependencies {
  store: Store;
  /** The directory of administrators. */
  administrators: Users;
  wallClock: Clock;
}

/** A new administrator. */
interface NewAdministrator {
  email: string;
  name: string;
  password: string;
  role: AdministratorRole;
}

/** What an administrator is registered as; undefined for who is none. */
export async function memberOf(
  { store }: Pick<AdministratorDependencies, 'store'>,
  userId: string,
): Promise<AdministratorMember | undefined> {
  const record = await store.collection('administrators').get(ADMINISTRATORS);
  return record?.members.find(({ user_id }) => user_id === userId);
}

/** Makes an administrator. @returns undefined where the address is one's already. */
export async function addAdministrator(
  { store, administrators, wallClock }: AdministratorDependencies,
  { email, name, password, role }: NewAdministrator,
): Promise<User | undefined> {
  const made = await administrators.make({
    identity: {
      connection: CONSOLE_DIRECTORY,
      provider: ADMINISTRATOR,
      addresses: { email },
      unique: ['email'],
    },
    profile: { name, email_verified: true },
    password,
  });
  if ('taken' in made) return undefined;
  const member = { user_id: made.user.id, role, added_at: new Date(wallClock()).toISOString() };
  await store.collection('administrators').upsert(ADMINISTRATORS, (current) => ({
    id: ADMINISTRATORS,
    members: [...(current?.members ?? []), member],
  }));
  return made.user;
}
