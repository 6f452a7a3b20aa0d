// Users who come from upstream identity providers: the provider's word makes and refreshes them. A user is known by the
// connection and the provider's own id for them alone. The same e-mail address at another connection is another user:
// whoever controls a provider could else take over every account whose address they claim there.
import { DATABASE } from '../records/connections.ts';
import {
  type AddressKind,
  type IdentityRecord,
  identityId,
  type UpstreamGrant,
} from '../records/identities.ts';
import { UniqueKeyError } from '../store/contract.ts';
import { updateUser } from './changes.ts';
import { newUserWrites, unlessPasswordKept } from './create.ts';
import { homeOf, type Identity, isLinked } from './identities.ts';
import { attributesOf, type RootProfile, rootProfile } from './root-profile.ts';
import type { UpstreamUser } from './upstream-user.ts';
import type { User, UsersDependencies } from './user.ts';

/**
 * The user who has just logged in at an upstream provider, made at the first login and refreshed at each one. Of any
 * number of first logins at once exactly one makes the user.
 * @returns undefined when the id belongs to a user of another connection, which is never taken over.
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
    // Its user was lost in a damaged store: it stands in nobody's way.
    await store.collection('identities').delete(id);
    return create(deps, upstream);
  }
  if (identity.provider !== upstream.provider) return undefined;
  return { user: await refresh(deps, upstream, { identity, user }), isNew: false };
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
  const { user, identity: made } = newUserWrites(deps, { identity, profile: { ...profile, ...metadata } });
  try {
    await deps.store.batch([
      { collection: 'users', insert: user },
      {
        collection: 'identities',
        insert: { ...made, ...identityMembers(upstream, made), ...(awaitsFactors && { awaitsFactors }) },
      },
      ...(provider === DATABASE ? [unlessPasswordKept(user.id)] : []),
      ...(upstream.also?.(user) ?? []),
    ]);
    return { user, isNew: true };
  } catch (thrown) {
    if (!(thrown instanceof UniqueKeyError)) throw thrown;
  }
  // Another login of theirs was sooner; or a user of another connection has the id.
  const sooner = await deps.store.collection('identities').get(made.id);
  const theirs = sooner && (await deps.store.collection('users').get(sooner.user_id));
  return theirs === undefined ? undefined : { user: theirs, isNew: false };
}

/** What a login changes: the identity always, the user's record where the connection says so. */
async function refresh(
  deps: UsersDependencies,
  upstream: UpstreamUser,
  { identity, user }: { identity: Identity; user: User },
): Promise<User> {
  const profile = rootProfile(upstream);
  // The user's own record is that of the identity that they were made with.
  const isRoot = !isLinked(identity) && homeOf(identity) === user.id;
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

/** The addresses of a profile that an identity is known by. */
function addressesIn({ email, username }: RootProfile, unique: readonly AddressKind[]) {
  return {
    ...(email !== undefined && { email }),
    ...(unique.includes('username') && username !== undefined && { username }),
  };
}

/** What an identity keeps of a login, beside its addresses. */
function identityMembers(
  upstream: UpstreamUser,
  before: Pick<Identity, 'upstream' | 'attributes'>,
): Pick<IdentityRecord, 'isSocial'> & Partial<Pick<IdentityRecord, 'attributes' | 'upstream'>> {
  const attributes = attributesOf(upstream);
  // Providers give a refresh token the first time alone.
  const refresh_token = upstream.grant?.refresh_token ?? before.upstream?.refresh_token;
  return {
    isSocial: upstream.isSocial,
    // What a provider says no more does not stay: groups, for instance, that the user has left.
    ...((Object.keys(attributes).length > 0 || before.attributes !== undefined) && { attributes }),
    ...(upstream.grant !== undefined && {
      upstream: { ...upstream.grant, ...(refresh_token !== undefined && { refresh_token }) },
    }),
  };
}

/**
 * Keeps what a provider gave in exchange for the refresh token of an identity; what it did not give anew stays. Nothing
 * changes where a login has brought other tokens meanwhile.
 */
export async function renewGrant(
  { store }: UsersDependencies,
  renewed: { id: string; refreshToken: string; grant: UpstreamGrant },
): Promise<void> {
  await store.collection('identities').update(renewed.id, (current) => {
    const { expires_at: _ended, ...before } = current.upstream ?? {};
    if (before.refresh_token !== renewed.refreshToken) return current;
    return { ...current, upstream: { ...before, ...renewed.grant } };
  });
}
