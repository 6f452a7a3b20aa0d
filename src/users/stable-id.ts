// Identities whose id is a name that a provider may give to somebody else later, such as a `uid` of a directory or an e-mail
// address. The provider also has an id that it never gives to another. That one is recorded in the identity, and only it
// logs in by the identity from then on.
import { type IdentityRecord, identityId } from '../records/connections/identities.ts';
import type { Store } from '../store/contract.ts';
import type { Identity } from './changes.ts';
import type { StableId, UpstreamUser } from './upstream-user.ts';
import type { UsersDependencies } from './user.ts';

/** A connection's account, by its ids. */
export interface StableAccount {
  connection: string;
  stable: StableId;
}

/**
 * - `known`: the identity is the account's; its id is recorded, or will be when the account has logged in.
 * - `unknown`: no identity may be the account's.
 * - `uncertain`: an identity has the account's name, but may be that of an account that had the name before.
 */
type StableMatch = { is: 'known' | 'uncertain'; identity: Identity } | { is: 'unknown'; isNamed: boolean };

/** Returns the identity of an account. */
async function matchStable(
  { store }: Pick<UsersDependencies, 'store'>,
  { connection, stable }: StableAccount,
): Promise<StableMatch> {
  const identities = store.collection('identities');
  const key = identityId(connection, stable.id);
  const [[recorded], named] = await Promise.all([
    identities.findBy('stable', key),
    identities.get(identityId(connection, stable.named)),
  ]);
  if (recorded !== undefined) return { is: 'known', identity: recorded };
  // An identity of another account, or of none any more.
  if (named === undefined || named.stable_id !== undefined)
    return { is: 'unknown', isNamed: named !== undefined };
  const user = await store.collection('users').get(named.user_id);
  const isSame = user !== undefined && stable.isSame(named, user);
  return { is: isSame ? 'known' : 'uncertain', identity: named };
}

/**
 * Returns an upstream user with the `upstreamId` of their identity, in which the account's id is recorded by now, or of the
 * identity to be created.
 * @returns the identity that may be another account's; what was refused is stored in it, for the command that decides.
 */
export async function settleStable(
  deps: UsersDependencies,
  upstream: UpstreamUser & StableAccount,
): Promise<UpstreamUser | { refused: Identity }> {
  const match = await matchStable(deps, upstream);
  if (match.is === 'unknown')
    return match.isNamed ? { ...upstream, upstreamId: upstream.stable.unnamed } : upstream;
  const { identity } = match;
  if (match.is === 'known' && (await recordStable(deps.store, identity, upstream.stable)))
    return { ...upstream, upstreamId: identity.upstream_id };
  await recordRefused(deps, identity, upstream.stable);
  return { refused: identity };
}

/** Returns the id of the user that an account certainly logs in as; undefined if there is none, or it is uncertain. */
export async function idOfStable(
  deps: Pick<UsersDependencies, 'store'>,
  account: StableAccount,
): Promise<string | undefined> {
  const match = await matchStable(deps, account);
  return match.is === 'known' ? match.identity.user_id : undefined;
}

/** @returns false if another account's is recorded by now. */
async function recordStable(store: Store, identity: Identity, { id }: StableId): Promise<boolean> {
  if (identity.stable_id === id) return true;
  const updated = await store.collection('identities').update(identity.id, (current) => {
    if (current.stable_id !== undefined) return current;
    const { refused: _, ...rest } = current;
    return { ...(rest as IdentityRecord), stable_id: id };
  });
  return updated?.stable_id === id;
}

async function recordRefused(
  { store, clock }: UsersDependencies,
  identity: Identity,
  { id, description }: StableId,
): Promise<void> {
  const at = new Date(clock()).toISOString();
  await store
    .collection('identities')
    .update(identity.id, (current) =>
      current.stable_id === undefined ? { ...current, refused: { stable_id: id, description, at } } : current,
    );
}
