// Users of upstream identity providers, who are created and updated from the provider's profile. Only the connection and the
// provider's id identify a user. The same e-mail address at another connection is another user: otherwise whoever controls a
// provider could take over every account whose address they claim there.
// docs/understand/decisions/connections.md#a-provider-identifies-a-user-and-proves-nothing-else
import { DATABASE } from '../records/connections/connections.ts';
import {
  type AddressKind,
  type IdentityRecord,
  identityId,
  type UpstreamGrant,
} from '../records/connections/identities.ts';
import { UniqueKeyError } from '../store/contract.ts';
import { type Identity, isLinked, originalUserId, updateUser } from './changes.ts';
import { writeNewUsers } from './connection-check.ts';
import { newUserWrites, refuseStoredPassword } from './create.ts';
import { attributesOf, type RootProfile, rootProfile } from './profile.ts';
import { settleStable } from './stable-id.ts';
import type { UpstreamUser } from './upstream-user.ts';
import type { User, UsersDependencies } from './user.ts';

/**
 * Returns the user who has just logged in at an upstream provider, as {@link userFromUpstream} does. If the provider gives names
 * to other accounts, but has an id of its own for each, only the account of that id is the user's ({@link settleStable}).
 * @returns the identity that may be another account's, if it is uncertain.
 */
export async function accountFromUpstream(
  deps: UsersDependencies,
  upstream: UpstreamUser,
): Promise<{ user: User; isNew: boolean } | { refused: Identity } | undefined> {
  const { stable } = upstream;
  const settled = stable === undefined ? upstream : await settleStable(deps, { ...upstream, stable });
  return 'refused' in settled ? settled : userFromUpstream(deps, settled);
}

/**
 * Returns the user who has just logged in at an upstream provider. The first login creates the user, also if there are several
 * at once; each later login updates them.
 * @returns undefined if the user id belongs to a user of another connection, or to another account of the provider.
 * @throws AuthError 400 for a new user whose connection was deleted meanwhile.
 */
export async function userFromUpstream(
  deps: UsersDependencies,
  upstream: UpstreamUser,
): Promise<{ user: User; isNew: boolean } | undefined> {
  const { store } = deps;
  const id = identityId(upstream.connection, upstream.upstreamId);
  const identity = await store.collection('identities').get(id);
  if (identity === undefined) return create(deps, upstream);
  const user = await store.collection('users').get(identity.user_id);
  if (user === undefined) {
    // The identity's user was lost in a damaged store.
    await store.collection('identities').delete(id);
    return create(deps, upstream);
  }
  if (identity.provider !== upstream.provider) return undefined;
  if (!isOfAccount(identity, upstream)) return undefined;
  return { user: await refresh(deps, upstream, { identity, user }), isNew: false };
}

/** Returns whether an identity is an account's, if an id of its account is recorded. */
function isOfAccount({ stable_id: recorded }: Identity, { stable }: UpstreamUser): boolean {
  return recorded === undefined ? stable === undefined : recorded === stable?.id;
}

async function create(
  deps: UsersDependencies,
  upstream: UpstreamUser,
): Promise<{ user: User; isNew: boolean } | undefined> {
  const { connection, provider, upstreamId, rootAttributes, metadata, awaitsFactors, unique = [] } = upstream;
  const root = rootAttributes === 'never_on_login' ? {} : rootProfile(upstream);
  const { email: _email, ...profile } = root;
  const addresses = addressesIn(root, unique);
  const identity = { connection, provider, upstreamId, addresses, unique };
  const { user, identity: record } = newUserWrites(deps, { identity, profile: { ...profile, ...metadata } });
  try {
    await writeNewUsers(deps.store, upstream, [
      { collection: 'users', insert: user },
      {
        collection: 'identities',
        insert: {
          ...record,
          ...identityMembers(upstream, record),
          ...(awaitsFactors && { awaitsFactors }),
          ...(upstream.stable !== undefined && { stable_id: upstream.stable.id }),
        },
      },
      ...(provider === DATABASE ? [refuseStoredPassword(user.id)] : []),
      ...(upstream.also?.(user) ?? []),
    ]);
    return { user, isNew: true };
  } catch (thrown) {
    if (!(thrown instanceof UniqueKeyError)) throw thrown;
  }
  // A concurrent login has created the user, or a user of another connection has the id.
  const existing = await deps.store.collection('identities').get(record.id);
  if (existing !== undefined && !isOfAccount(existing, upstream)) return undefined;
  const existingUser = existing && (await deps.store.collection('users').get(existing.user_id));
  return existingUser === undefined ? undefined : { user: existingUser, isNew: false };
}

/** Updates the identity, and the user's record if the connection says so (`on_each_login`). */
async function refresh(
  deps: UsersDependencies,
  upstream: UpstreamUser,
  { identity, user }: { identity: Identity; user: User },
): Promise<User> {
  const profile = rootProfile(upstream);
  // The user's record follows only the identity that the user was created with.
  const isRoot = !isLinked(identity) && originalUserId(identity) === user.id;
  const setsRoot = isRoot && upstream.rootAttributes === 'on_each_login';
  await deps.store.collection('identities').update(identity.id, (current) => ({
    ...current,
    ...identityMembers(upstream, current),
    ...(isLinked(current) ? { profile: { ...profile }, ...addressesIn(profile, current.unique) } : {}),
  }));
  if (!setsRoot) return user;
  const changed = Object.entries(profile).some(
    ([name, value]) => JSON.stringify(user[name as keyof User]) !== JSON.stringify(value),
  );
  return changed ? ((await updateUser(deps, user.id, profile)) ?? user) : user;
}

function addressesIn({ email, username }: RootProfile, unique: readonly AddressKind[]) {
  return {
    ...(email !== undefined && { email }),
    ...(unique.includes('username') && username !== undefined && { username }),
  };
}

/** Returns what a login changes in an identity besides its addresses. */
function identityMembers(
  upstream: UpstreamUser,
  before: Pick<Identity, 'upstream' | 'attributes'>,
): Pick<IdentityRecord, 'isSocial'> & Partial<Pick<IdentityRecord, 'attributes' | 'upstream'>> {
  const attributes = attributesOf(upstream);
  // Some providers issue a refresh token only the first time.
  const refresh_token = upstream.grant?.refresh_token ?? before.upstream?.refresh_token;
  return {
    isSocial: upstream.isSocial,
    // Attributes that the provider no longer sends are removed, such as groups that the user has left.
    ...((Object.keys(attributes).length > 0 || before.attributes !== undefined) && { attributes }),
    ...(upstream.grant !== undefined && {
      upstream: { ...upstream.grant, ...(refresh_token !== undefined && { refresh_token }) },
    }),
  };
}

/**
 * Stores the tokens that a provider issued for the refresh token of an identity; members that it did not issue anew stay.
 * Nothing changes if a login has stored another refresh token meanwhile.
 */
export async function renewGrant(
  { store }: UsersDependencies,
  renewed: { id: string; refreshToken: string; grant: UpstreamGrant },
): Promise<void> {
  await store.collection('identities').update(renewed.id, (current) => {
    // The expired token goes even if there is no new one: DPoP-bound tokens are not stored.
    const { access_token: _expired, expires_at: _at, ...before } = current.upstream ?? {};
    if (before.refresh_token !== renewed.refreshToken) return current;
    return { ...current, upstream: { ...before, ...renewed.grant } };
  });
}
