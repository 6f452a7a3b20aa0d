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
  /** What is left of a user who is there no more. */
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
    /** Of a new password: what was begun with the one before. */
    endPending: async (userId: string): Promise<void> => {
      await Promise.all([authenticators.removeAllBegunOf(userId), browsers.forgetAllOf(userId)]);
    },
    endSessions,
    /** Of a user who was blocked: sessions and refresh tokens. */
    endBlocked: async (userId: string): Promise<void> => {
      await sessions.endAllOf(userId, { reason: 'account-deactivated', refreshTokens: true });
    },
    /** Of who takes an account over: linked identities, which may be of who made it. A login by one ends with {@link endAll}. */
    detachLinked: (userId: string) => detachLinked({ store, users }, userId),
    /** All but the account itself: what somebody made who had not proved its address. */
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
     * Of a user from whom an identity was taken. What came by it cannot be told from the rest: a refresh token does not say
     * by which, a passkey the connection alone.
     */
    endUnlinked: async (userId: string, { connection }: Pick<Identity, 'connection'>): Promise<void> => {
      await endPasskeysBy(store, userId, connection);
      await sessions.endAllOf(userId, { reason: 'session-revoked', refreshTokens: true });
    },
    /** Of a user who is now another: what they were about to log in to asks them again, and they are that one. */
    endLinked: (userId: string) => endGone(userId, { requestsStay: true }),
    /** Removes a user with all that is theirs; the log keeps what happened. */
    removeUser: async (userId: string): Promise<void> => {
      // The user first: whatever a login under way stores after that, it finds nobody to whom it belongs.
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
      // There is such a user again: it is nobody's.
      await store.collection('identities').delete(id);
    }
  }
}
