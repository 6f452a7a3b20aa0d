// What ends with a user's password or account, wherever it is kept.
import type { Sessions } from './engine/sessions.ts';
import type { Authenticators } from './factors/authenticators.ts';
import type { KnownBrowsers } from './factors/browsers.ts';
import { endPasskeysBy } from './management/resources/users/passkeys.ts';
import type { KnownCallers } from './protection/callers.ts';
import type { Challenges } from './protection/challenges.ts';
import { type Store, UniqueKeyError } from './store/contract.ts';
import { type Identity, isLinked } from './users/identities.ts';
import type { Users } from './users/users.ts';

interface AccountEndingsDependencies {
  store: Store;
  users: Users;
  sessions: Sessions;
  challenges: Challenges;
  callers: KnownCallers;
  authenticators: Authenticators;
  browsers: KnownBrowsers;
}

/** What ends for a user. */
export function accountEndings({
  store,
  users,
  sessions,
  challenges,
  callers,
  authenticators,
  browsers,
}: AccountEndingsDependencies) {
  const endSessions = async (userId: string): Promise<void> => {
    await sessions.endAllOf(userId, { reason: 'password-changed', refreshTokens: true });
  };
  const endConsents = (userId: string) => store.collection('consents').deleteBy('user', userId);
  const endPasskeys = (userId: string) => store.collection('passkeys').deleteBy('user', userId);
  const endConnected = (userId: string) => store.collection('connectedAccounts').deleteBy('user', userId);
  /**
   * Ends all that is kept of a user who was removed, or linked to another: sessions, tokens, factors, passkeys,
   * consents, memberships, pending codes and links.
   */
  const endGone = async (userId: string, { requestsStay = false } = {}): Promise<void> => {
    await Promise.all([
      challenges.revokeAllOf(userId),
      callers.forgetAllOf(userId),
      authenticators.removeAllOf(userId),
      browsers.forgetAllOf(userId),
      endConsents(userId),
      store.collection('memberships').deleteBy('user', userId),
      endPasskeys(userId),
      endConnected(userId),
      sessions.endAllOf(userId, { reason: 'account-deleted', refreshTokens: true, requestsStay }),
    ]);
  };
  return {
    /** After a new password: ends what was begun with the old one. */
    endPending: async (userId: string): Promise<void> => {
      await Promise.all([authenticators.removeAllBegunOf(userId), browsers.forgetAllOf(userId)]);
    },
    endSessions,
    /** After a user was blocked: ends their sessions and refresh tokens. */
    endBlocked: async (userId: string): Promise<void> => {
      await sessions.endAllOf(userId, { reason: 'account-deactivated', refreshTokens: true });
    },
    /**
     * After an account was taken over by the owner of its address: parts it from its linked identities, which may
     * belong to whoever made the account. Sessions by one of them end with {@link endAll}.
     */
    detachLinked: (userId: string) => detachLinked({ store, users }, userId),
    /** Ends everything but the account itself, where it was made by somebody who had not proved its address. */
    endAll: async (userId: string): Promise<void> => {
      await Promise.all([
        endSessions(userId),
        authenticators.removeAllOf(userId),
        endConsents(userId),
        endPasskeys(userId),
        endConnected(userId),
      ]);
    },
    /**
     * After an identity was unlinked from a user: ends all their sessions and tokens, because a refresh token does
     * not say by which identity it was obtained. A passkey names its connection only.
     */
    endUnlinked: async (userId: string, { connection }: Pick<Identity, 'connection'>): Promise<void> => {
      await endPasskeysBy(store, userId, connection);
      await sessions.endAllOf(userId, { reason: 'session-revoked', refreshTokens: true });
    },
    /**
     * After a user was linked to another and is gone as such. Login requests that wait stay: they ask again, and
     * log in the other user.
     */
    endLinked: (userId: string) => endGone(userId, { requestsStay: true }),
    /** Removes a user with all that is theirs; the log keeps what happened. */
    removeUser: async (userId: string): Promise<void> => {
      // The user's record goes first: what a login under way stores after that belongs to no user and is of no use.
      await users.remove(userId);
      await endGone(userId);
    },
  };
}

/** Takes the linked identities of a user apart: each is a user of its own again. */
async function detachLinked(
  { store, users }: Pick<AccountEndingsDependencies, 'store' | 'users'>,
  userId: string,
): Promise<void> {
  for (const { id } of (await users.identitiesOf(userId)).filter(isLinked)) {
    try {
      await users.unlink(userId, id);
    } catch (thrown) {
      if (!(thrown instanceof UniqueKeyError)) throw thrown;
      // A user with that id exists already, so the identity belongs to neither and goes.
      await store.collection('identities').delete(id);
    }
  }
}
