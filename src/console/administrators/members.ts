// Who the administrators are, and what their roles are. All of it is one record: what is decided is decided by what it says at
// that moment, for the one who acts, too.
import {
  ADMINISTRATOR,
  ADMINISTRATORS,
  type AdministratorMember,
  type AdministratorRole,
  type AdministratorsRecord,
  CONSOLE_DIRECTORY,
} from '../../records/administrators.ts';
import type { Frozen } from '../../records/record.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Store, Write } from '../../store/contract.ts';
import { judge } from '../../store/judge.ts';
import type { User } from '../../users/user.ts';
import type { Users } from '../../users/users.ts';

export interface MemberDependencies {
  store: Store;
  /** The directory of administrators. */
  administrators: Users;
  wallClock: Clock;
}

type Register = Frozen<AdministratorsRecord>;

/** Why a change of the administrators is not made. */
export type MemberFault =
  /** There would be no owner any more. */
  | 'last-owner'
  /** Whoever asks for it is no owner any more. */
  | 'not-allowed'
  | 'missing';

/** All administrators, and the links that are out. */
export async function registerOf({ store }: Pick<MemberDependencies, 'store'>): Promise<Register> {
  const found = await store.collection('administrators').get(ADMINISTRATORS);
  return found ?? { id: ADMINISTRATORS, members: [] };
}

/**
 * Whether an address is an administrator's. Somebody who has no role any more, since the process that removed them ended before it
 * had done all, is removed now.
 */
export async function isTaken(
  {
    removeUser,
    ...deps
  }: Pick<MemberDependencies, 'store' | 'administrators'> & { removeUser(userId: string): Promise<void> },
  email: string,
): Promise<boolean> {
  // The users first: who is made with a role meanwhile is in the register then.
  const users = await deps.administrators.withEmail(email);
  const { members } = await registerOf(deps);
  const gone = users.filter(({ id }) => !members.some(({ user_id }) => user_id === id));
  for (const { id } of gone) await removeUser(id);
  return gone.length < users.length;
}

/** What an administrator is registered as; undefined for who is none. */
export async function memberOf(
  deps: Pick<MemberDependencies, 'store'>,
  userId: string,
): Promise<AdministratorMember | undefined> {
  return (await registerOf(deps)).members.find(({ user_id }) => user_id === userId);
}

/** Whether somebody is an owner. */
export function isOwner({ members }: Register, userId: string): boolean {
  return members.some((one) => one.user_id === userId && one.role === 'owner');
}

/** A new administrator. */
interface NewAdministrator {
  email: string;
  name: string;
  password: string;
  role: AdministratorRole;
}

/**
 * Makes an administrator: the user, the password and the role in one write, or none of them.
 * @param admitted judges at that moment, and may change, the register. It throws where nobody is to be made.
 * @returns undefined where the address is one's already.
 */
export async function addAdministrator(
  { store, administrators, wallClock }: MemberDependencies,
  { email, name, password, role }: NewAdministrator,
  admitted: (register: Register) => Register = (register) => register,
): Promise<User | undefined> {
  // The change below is of a record that is there.
  await store
    .collection('administrators')
    .upsert(ADMINISTRATORS, (found) => found ?? { id: ADMINISTRATORS, members: [] });
  const added_at = new Date(wallClock()).toISOString();
  const made = await administrators.create({
    identity: {
      connection: CONSOLE_DIRECTORY,
      provider: ADMINISTRATOR,
      addresses: { email },
      unique: ['email'],
    },
    profile: { name, email_verified: true },
    password,
    also: ({ id }): Write[] => [
      {
        collection: 'administrators',
        update: ADMINISTRATORS,
        change: (current) => {
          const register = admitted(current);
          return { ...register, members: [...register.members, { user_id: id, role, added_at }] };
        },
      },
    ],
  });
  return 'taken' in made ? undefined : made.user;
}

/** Gives an administrator another role. @param by the owner who does it. @returns the role of before. */
export function changeRole(
  { store }: Pick<MemberDependencies, 'store'>,
  userId: string,
  { role, by }: { role: AdministratorRole; by: string },
): Promise<MemberFault | { before: AdministratorRole }> {
  return changed(store, { userId, by }, (register) => ({
    ...withoutLinks(register, role === 'owner' ? undefined : userId),
    members: register.members.map((one) => (one.user_id === userId ? { ...one, role } : one)),
  }));
}

/** Gives an administrator another role, whoever may ask for that otherwise: for the command. */
export async function changeRoleAtOnce(
  { store }: Pick<MemberDependencies, 'store'>,
  userId: string,
  role: AdministratorRole,
): Promise<void> {
  await store.collection('administrators').update(ADMINISTRATORS, (register) => ({
    ...register,
    members: register.members.map((one) => (one.user_id === userId ? { ...one, role } : one)),
  }));
}

/** Takes somebody's role away. @param by the owner who does it. @returns the role of before. */
export function removeMember(
  { store }: Pick<MemberDependencies, 'store'>,
  userId: string,
  by: string,
): Promise<MemberFault | { before: AdministratorRole }> {
  return changed(store, { userId, by }, (register) => ({
    ...withoutLinks(register, userId),
    members: register.members.filter(({ user_id }) => user_id !== userId),
  }));
}

/** What an owner has asked others by, and what was asked of them, ends with their right. */
function withoutLinks(register: Register, userId: string | undefined): Register {
  const { links = [] } = register;
  if (userId === undefined) return register;
  return { ...register, links: links.filter((one) => one.made_by !== userId && one.user_id !== userId) };
}

async function changed(
  store: Store,
  { userId, by }: { userId: string; by: string },
  change: (register: Register) => Register,
): Promise<MemberFault | { before: AdministratorRole }> {
  type Verdict = MemberFault | { before: AdministratorRole };
  const verdict = await judge(
    store.collection('administrators'),
    ADMINISTRATORS,
    (register): { verdict: Verdict; next?: Register } => {
      const before = register.members.find(({ user_id }) => user_id === userId)?.role;
      if (!isOwner(register, by)) return { verdict: 'not-allowed' };
      if (before === undefined) return { verdict: 'missing' };
      const next = change(register);
      if (!next.members.some(({ role }) => role === 'owner')) return { verdict: 'last-owner' };
      return { verdict: { before }, next };
    },
  );
  return verdict ?? 'missing';
}
