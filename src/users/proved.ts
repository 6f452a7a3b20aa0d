// Users who come by an address alone: whoever proves that it is theirs.

import { type AlsoWritten, createUser, type Profile } from './create.ts';
import { type ConnectionAddress, findByAddress } from './identities.ts';
import type { User, UsersDependencies } from './user.ts';

/** An address that somebody has just proved to be theirs. */
export interface ProvedAddress extends ConnectionAddress {
  kind: 'email' | 'phone_number';
  /** The connection's strategy. */
  provider: string;
  /** Whether a user is made where there is none. */
  mayCreate: boolean;
  /** Whose the address was found to be just now, where that was looked up. */
  seen?: { user: User | undefined };
  /** What is said of a user who is made. */
  profile?: Profile | undefined;
  /** What is written with one who is made. */
  also?: AlsoWritten | undefined;
}

const VERIFIED = { email: 'email_verified', phone_number: 'phone_verified' } as const;

/**
 * The user who has just proved an address, made if there was none, with the address verified.
 * Two proofs at once make one user.
 * @returns undefined where there is none and none may be made.
 */
export async function userWhoProved(
  deps: UsersDependencies,
  proved: ProvedAddress,
): Promise<{ user: User; isNew: boolean } | undefined> {
  const { store, clock } = deps;
  const found = proved.seen === undefined ? await findByAddress(store, proved) : proved.seen.user;
  if (found === undefined) return proved.mayCreate ? create(deps, proved) : undefined;
  const verified = VERIFIED[proved.kind];
  // The address of an identity that was linked says nothing about the user's own.
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
  const { connection, provider, kind, address, profile, also } = proved;
  const created = await createUser(deps, {
    identity: { connection, provider, addresses: { [kind]: address }, unique: [kind] },
    profile: { ...profile, [VERIFIED[kind]]: true },
    also,
  });
  if ('user' in created) return { user: created.user, isNew: true };
  // Somebody else who proved it was sooner.
  const user = await findByAddress(deps.store, proved);
  if (user === undefined) throw new Error('the new user is not in the store');
  return { user, isNew: false };
}
