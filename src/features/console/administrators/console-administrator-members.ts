// The administrators and their roles. They are one record, so that every change is decided on its current state,
// which includes the role of the owner who makes the change.

import type { Frozen } from '../../../records/base/record.ts';
import {
  ADMINISTRATOR,
  ADMINISTRATORS,
  type AdministratorMember,
  type AdministratorRole,
  type AdministratorsRecord,
  CONSOLE_DIRECTORY,
} from '../../../records/users/administrators.ts';
import type { Clock } from '../../../runtime/clock.ts';
import type { Store, Write } from '../../../store/contract.ts';
import { updateWithResult } from '../../../store/contract.ts';
import type { Administrators } from '../../../users/administrators.ts';
import type { User } from '../../../users/user.ts';

export interface MemberDependencies {
  store: Store;
  administrators: Administrators;
  wallClock: Clock;
}

type Register = Frozen<AdministratorsRecord>;

export type MemberFault =
  /** No owner would be left. */
  | 'last-owner'
  /** The one who makes the change is no longer an owner. */
  | 'not-allowed'
  | 'missing';

export async function readRegister({ store }: Pick<MemberDependencies, 'store'>): Promise<Register> {
  const found = await store.collection('administrators').get(ADMINISTRATORS);
  return found ?? { id: ADMINISTRATORS, members: [] };
}

/**
 * Reports whether an address belongs to an administrator. A user without a role is left over from a removal that a
 * crash interrupted, and is deleted now.
 */
export async function isEmailTaken(
  {
    removeUser,
    ...deps
  }: Pick<MemberDependencies, 'store' | 'administrators'> & { removeUser(userId: string): Promise<void> },
  email: string,
): Promise<boolean> {
  // The users are read first: one who is created with a role meanwhile is then in the register.
  const users = await deps.administrators.withEmail(email);
  const { members } = await readRegister(deps);
  const leftovers = users.filter(({ id }) => !members.some(({ user_id }) => user_id === id));
  for (const { id } of leftovers) await removeUser(id);
  return leftovers.length < users.length;
}

/** Returns the entry of an administrator; undefined for another user. */
export async function memberOf(
  deps: Pick<MemberDependencies, 'store'>,
  userId: string,
): Promise<AdministratorMember | undefined> {
  return (await readRegister(deps)).members.find(({ user_id }) => user_id === userId);
}

export function isOwner({ members }: Register, userId: string): boolean {
  return members.some((one) => one.user_id === userId && one.role === 'owner');
}

interface NewAdministrator {
  email: string;
  name: string;
  password: string;
  role: AdministratorRole;
}

/**
 * Creates an administrator: user, password and role in one write, or none of them.
 * @param admit checks the register within that write, and may change it; it throws to refuse.
 * @returns undefined when the address is taken.
 */
export async function addAdministrator(
  { store, administrators, wallClock }: MemberDependencies,
  { email, name, password, role }: NewAdministrator,
  admit: (register: Register) => Register = (register) => register,
): Promise<User | undefined> {
  // The write below can only change a record that exists.
  await store
    .collection('administrators')
    .upsert(ADMINISTRATORS, (found) => found ?? { id: ADMINISTRATORS, members: [] });
  const added_at = new Date(wallClock()).toISOString();
  const created = await administrators.create({
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
          const register = admit(current);
          return { ...register, members: [...register.members, { user_id: id, role, added_at }] };
        },
      },
    ],
  });
  return 'taken' in created ? undefined : created.user;
}

/** @param ownerId the owner who does so. @returns the previous role, or why it was refused. */
export function changeRole(
  { store }: Pick<MemberDependencies, 'store'>,
  userId: string,
  { role, ownerId }: { role: AdministratorRole; ownerId: string },
): Promise<MemberFault | { before: AdministratorRole }> {
  return changeMember(store, { userId, ownerId }, (register) => ({
    ...withoutLinks(register, role === 'owner' ? undefined : userId),
    members: register.members.map((one) => (one.user_id === userId ? { ...one, role } : one)),
  }));
}

/** Changes an administrator's role without an owner who does so: for the command line. */
export async function changeRoleAsOperator(
  { store }: Pick<MemberDependencies, 'store'>,
  userId: string,
  role: AdministratorRole,
): Promise<void> {
  await store.collection('administrators').update(ADMINISTRATORS, (register) => ({
    ...register,
    members: register.members.map((one) => (one.user_id === userId ? { ...one, role } : one)),
  }));
}

/**
 * Takes an administrator's role away.
 * @param ownerId the owner who does so.
 * @returns the previous role, or why it was refused.
 */
export function removeMember(
  { store }: Pick<MemberDependencies, 'store'>,
  userId: string,
  ownerId: string,
): Promise<MemberFault | { before: AdministratorRole }> {
  return changeMember(store, { userId, ownerId }, (register) => ({
    ...withoutLinks(register, userId),
    members: register.members.filter(({ user_id }) => user_id !== userId),
  }));
}

/** Returns the register without the links that a former owner made or received. */
function withoutLinks(register: Register, userId: string | undefined): Register {
  const { links = [] } = register;
  if (userId === undefined) return register;
  return { ...register, links: links.filter((one) => one.made_by !== userId && one.user_id !== userId) };
}

async function changeMember(
  store: Store,
  { userId, ownerId }: { userId: string; ownerId: string },
  change: (register: Register) => Register,
): Promise<MemberFault | { before: AdministratorRole }> {
  type Outcome = MemberFault | { before: AdministratorRole };
  const outcome = await updateWithResult(
    store.collection('administrators'),
    ADMINISTRATORS,
    (register): { result: Outcome; next?: Register } => {
      const before = register.members.find(({ user_id }) => user_id === userId)?.role;
      if (!isOwner(register, ownerId)) return { result: 'not-allowed' };
      if (before === undefined) return { result: 'missing' };
      const next = change(register);
      if (!next.members.some(({ role }) => role === 'owner')) return { result: 'last-owner' };
      return { result: { before }, next };
    },
  );
  return outcome ?? 'missing';
}
