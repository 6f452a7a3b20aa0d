// Linking users: identities of one person are combined into one user, and separated again.
import { z } from 'zod';
import type { Messages } from '../../../../capabilities/delivery/delivery-messages.ts';
import { mailOwners, recordLink, reportLink } from '../../../../capabilities/delivery/link-notice.ts';
import type { IdTokenReaders } from '../../../../engine/token/sent-id-tokens.ts';
import { identityId } from '../../../../records/connections/identities.ts';
import { type Store, UniqueKeyError } from '../../../../store/contract.ts';
import type { Events } from '../../../../tenant/events.ts';
import { type Identity, originalUserId, primaryIdentity } from '../../../../users/changes.ts';
import { type LinkedUsers, mayBelongToAnother } from '../../../../users/linking.ts';
import type { User } from '../../../../users/user.ts';
import type { Users } from '../../../../users/users.ts';
import { type Call, type Caller, callsWith, created, ok } from '../../call.ts';
import { apiError } from '../../management-errors.ts';
import { conflict } from '../../resource.ts';
import { identityViews, userOf } from './user-calls.ts';

export interface UserIdentitiesDependencies {
  store: Store;
  users: Users;
  events: Events;
  messages: Messages;
  readIdTokenProof: IdTokenReaders['readIdTokenProof'];
  /** Whether a link would take the protection of a second factor away. */
  losesFactor(users: LinkedUsers): Promise<boolean>;
  endLinked(userId: string): Promise<void>;
  /** Ends what may have been obtained with an unlinked identity: sessions, tokens and passkeys. */
  endUnlinked(userId: string, identity: Pick<Identity, 'connection'>): Promise<void>;
}

const byName = z.strictObject({
  provider: z.string().min(1).max(128),
  // SDKs of some providers send ids as numbers.
  user_id: z.union([z.string().min(1).max(255), z.number().int()]).transform(String),
  connection_id: z.string().min(1).max(64).optional(),
});
const byToken = z.strictObject({ link_with: z.string().min(1).max(20_000) });

type LinkBody = z.output<typeof byName> | z.output<typeof byToken>;

const alreadyLinked = conflict('Specified identity already exists.', 'identity_conflict');
const noUserToLink = () => apiError(400, 'The user to be linked does not exist.', 'inexistent_user');

/** Returns the user to be linked. @throws AuthError 400, 403, 409 */
async function userToLink(
  deps: UserIdentitiesDependencies,
  user: User,
  body: LinkBody,
  caller: Caller,
): Promise<User> {
  if ('link_with' in body) return provedUser(deps, body.link_with, { user, caller });
  // A user must prove to own the other account too, with an ID token.
  if (caller.isUser)
    throw apiError(403, 'Insufficient scope, expected any of: update:users', 'insufficient_scope');
  const { provider, connection_id } = body;
  const upstreamId = body.user_id.startsWith(`${provider}|`)
    ? body.user_id.slice(provider.length + 1)
    : body.user_id;
  const ownIdentities = await deps.users.identitiesOf(user.id);
  const isAlreadyLinked = ownIdentities.some(
    (one) => one.provider === provider && one.upstream_id === upstreamId,
  );
  if (isAlreadyLinked) throw alreadyLinked();
  if (connection_id !== undefined) await requireIn(deps, connection_id, upstreamId);
  const other = await deps.users.get(`${provider}|${upstreamId}`);
  if (other === undefined) throw noUserToLink();
  return other;
}

/**
 * Checks that a connection has an identity that is not linked.
 * @throws AuthError 400 if it has none; 409 if it is linked
 */
async function requireIn({ store }: UserIdentitiesDependencies, connectionId: string, upstreamId: string) {
  const connection = await store.collection('connections').get(connectionId);
  if (connection === undefined)
    throw apiError(400, 'The connection does not exist.', 'inexistent_connection');
  const identity = await store.collection('identities').get(identityId(connection.name, upstreamId));
  if (identity === undefined) throw noUserToLink();
  if (identity.user_id !== originalUserId(identity)) throw alreadyLinked();
}

/** The same for every token, so that it tells nothing of an account. The begin is the hosted service's message. */
const NO_PROOF =
  'Invalid id token on link_with property: the user of that account has to log in again, in a browser (/authorize with ' +
  'prompt=login), at a first-party application, with a second factor if they have one, at most ten minutes before';

/**
 * Returns the user whose presence an ID token proves.
 * @throws AuthError 400 if the token is no proof; 403 `insufficient_factors` if the user would lose a second factor
 */
async function provedUser(
  deps: UserIdentitiesDependencies,
  token: string,
  { user, caller }: { user: User; caller: Caller },
): Promise<User> {
  const proof = await deps.readIdTokenProof(token);
  const invalid = apiError(400, NO_PROOF, 'invalid_body');
  if (proof === undefined) throw invalid;
  // A client must not use a token that was issued to another client.
  if (caller.isUser && proof.client.client_id !== caller.clientId) throw invalid;
  // Without administrators, whom nobody links.
  const other = await deps.users.get(proof.userId);
  // Linking would let a blocked user log in as another user.
  if (other === undefined || other.blocked === true) throw invalid;
  // The real owner of the address could set a password for it, and would then have access to the linked account.
  // docs/understand/decisions/users-linking.md#with-a-users-own-token-an-account-whose-address-nobody-has-verified-cannot-be-linked
  if (caller.isUser && mayBelongToAnother(other))
    throw apiError(400, 'The user to be linked has an address that is not verified.', 'unverified_email');
  if (await deps.losesFactor({ stays: user, goes: other }))
    throw apiError(
      403,
      'The user to be linked has a second factor; the other user must enroll one first.',
      'insufficient_factors',
    );
  return other;
}

const call = callsWith<UserIdentitiesDependencies>();

// docs/understand/decisions/users-linking.md#unlinking-ends-all-sessions-and-tokens-of-the-user
export const userIdentityCalls: Call<UserIdentitiesDependencies>[] = [
  call({
    method: 'POST',
    path: '/users/:id/identities',
    scopes: ['update:users'],
    currentUserScopes: ['update:current_user_identities'],
    currentUserAct: 'identity',
    summary: 'Link a user account to another',
    body: z.union([byToken, byName]),
    handle: async (deps, { params, body, caller, ip, admitAgain }) => {
      const user = await userOf(deps, params.id);
      const before = identityViews(await deps.users.identitiesOf(user.id));
      const other = await userToLink(deps, user, body, caller);
      if (other.id === user.id) throw alreadyLinked();
      const connection = primaryIdentity(await deps.users.identitiesOf(other.id))?.connection ?? '';
      // What the caller's and the user's token prove has to hold when the link is written.
      const isLinked = await deps.users.link(user.id, other.id, async ({ stays }) => {
        await admitAgain();
        if ('link_with' in body) await provedUser(deps, body.link_with, { user: stays, caller });
        return true;
      });
      if (!isLinked) throw alreadyLinked();
      await deps.endLinked(other.id);
      const request = { clientId: caller.clientId, ip, connection, languages: [] };
      const linked = { stays: user, goes: other };
      // Whoever links by id acts for the tenant, often on many users; the owners are told of what was done as them.
      if ('link_with' in body) await reportLink(deps, linked, request);
      else recordLink(deps, linked, request);
      return { ...created(identityViews(await deps.users.identitiesOf(user.id))), before };
    },
  }),
  call({
    method: 'DELETE',
    // Not `:user_id`, so that the parameter is not taken for the user whom the token belongs to.
    path: '/users/:id/identities/:provider/:identity_id',
    scopes: ['update:users'],
    currentUserScopes: ['update:current_user_identities'],
    currentUserAct: 'identity',
    summary: 'Unlink an identity of a user',
    handle: async (deps, { params, caller, ip, admitAgain }) => {
      const user = await userOf(deps, params.id);
      await admitAgain();
      const { provider = '', identity_id: identityId = '' } = params;
      const upstreamId = identityId.startsWith(`${provider}|`)
        ? identityId.slice(provider.length + 1)
        : identityId;
      const before = await deps.users.identitiesOf(user.id);
      const identity = before.find((one) => one.provider === provider && one.upstream_id === upstreamId);
      if (identity !== undefined && originalUserId(identity) === user.id) {
        throw apiError(400, 'Main identity cannot be unlinked', 'invalid_uri');
      }
      if (identity !== undefined) {
        const still = caller.isUser ? [deps.users.stillWrite(user)] : [];
        const isUnlinked = await deps.users.unlink(user.id, identity.id, still).catch(refuseTaken);
        if (isUnlinked) await deps.endUnlinked(user.id, identity);
        const owners = [user, { ...identity.profile }];
        if (isUnlinked && caller.isUser) await mailOwners(deps, owners, 'unlinked', { ip, languages: [] });
      }
      const after = identityViews(await deps.users.identitiesOf(user.id));
      return ok(after, { before: identityViews(before), after });
    },
  }),
];

function refuseTaken(thrown: unknown): never {
  throw thrown instanceof UniqueKeyError ? conflict('The user already exists.', 'auth0_idp_error')() : thrown;
}
