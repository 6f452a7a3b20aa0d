// Users of passwordless connections, who log in by proving an address.

import type { ExpectedConnection } from './connection-check.ts';
import { createUser, type FurtherWrites, type Profile } from './create.ts';
import { type ConnectionAddress, findByAddress } from './identities.ts';
import type { User, UsersDependencies } from './user.ts';

/** An address that its owner has just proved. */
export interface ProvedAddress extends ConnectionAddress, ExpectedConnection {
  kind: 'email' | 'phone_number';
  /** The connection's strategy. */
  provider: string;
  /** Whether to create a user if there is none. */
  mayCreate: boolean;
  /** The user with the address, if that was looked up already. */
  lookup?: { user: User | undefined };
  /** The profile of a new user. */
  profile?: Profile | undefined;
  /** Written with a new user. */
  also?: FurtherWrites | undefined;
}

const VERIFIED = { email: 'email_verified', phone_number: 'phone_verified' } as const;

/**
 * Returns the user who has just proved an address, with the address marked as verified. Creates the user if there is none;
 * concurrent proofs create one user.
 * @returns undefined if there is none and `mayCreate` is false.
 */
export async function userWhoProved(
  deps: UsersDependencies,
  proved: ProvedAddress,
): Promise<{ user: User; isNew: boolean } | undefined> {
  const { store, clock } = deps;
  const found = proved.lookup === undefined ? await findByAddress(store, proved) : proved.lookup.user;
  if (found === undefined) return proved.mayCreate ? create(deps, proved) : undefined;
  const verified = VERIFIED[proved.kind];
  // The address of a linked identity says nothing about the user's own address.
  if (found[verified] === true || found[proved.kind] !== proved.address) return { user: found, isNew: false };
  const updated = await store
    .collection('users')
    .update(found.id, (current) =>
      current[proved.kind] === proved.address
        ? { ...current, [verified]: true, updated_at: new Date(clock()).toISOString() }
        : current,
    );
  return { user: updated ?? found, isNew: false };
}

async function create(
  deps: UsersDependencies,
  proved: ProvedAddress,
): Promise<{ user: User; isNew: boolean }> {
  const { connection, connectionId, provider, kind, address, profile, also } = proved;
  const created = await createUser(deps, {
    identity: { connection, connectionId, provider, addresses: { [kind]: address }, unique: [kind] },
    profile: { ...profile, [VERIFIED[kind]]: true },
    also,
  });
  if ('user' in created) return { user: created.user, isNew: true };
  // A concurrent proof has created the user.
  const user = await findByAddress(deps.store, proved);
  if (user === undefined) throw new Error('the new user is not in the store');
  return { user, isNew: false };
}
