// Second factors of users who were made here before they first logged in.
import type { Write } from '../store/contract.ts';
import { type Identity, isLinked } from './identities.ts';
import { factorWrites, type ImportedFactor } from './imported-factors.ts';
import type { UsersDependencies } from './user.ts';

/** The writes that give somebody who is here already the second factors that they bring, where they have none yet. */
export async function factorsOf(
  deps: UsersDependencies,
  identity: Identity,
  factors: readonly ImportedFactor[],
): Promise<Write[]> {
  // One that was linked is another user's, who has factors of their own.
  if (factors.length === 0 || isLinked(identity)) return [];
  const present = await deps.store.collection('authenticators').findBy('user', identity.user_id);
  return present.length === 0 ? factorWrites(deps, identity.user_id, factors) : [];
}
