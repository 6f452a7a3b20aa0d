// What ends with a user's password or account, in every kind of record that belongs to the user.

import type { Challenges } from '../../capabilities/protection/challenges.ts';
import type { KnownCallers } from '../../capabilities/protection/rate-limit.ts';
import type { Sessions } from '../../engine/session/sessions.ts';
import { type Store, UniqueKeyError } from '../../store/contract.ts';
import { type Identity, isLinked } from '../../users/changes.ts';
import type { User } from '../../users/user.ts';
import type { Users } from '../../users/users.ts';
import type { Authenticators } from '../factors/authenticators.ts';
import type { KnownBrowsers } from '../factors/browsers.ts';
import { deletePasskeysOf } from '../management/resources/users/user-passkeys-calls.ts';

interface AccountEndingsDependencies {
  store: Store;
  users: Users;
  sessions: Sessions;
  challenges: Challenges;
  callers: KnownCallers;
  authenticators: Authenticators;
  browsers: KnownBrowsers;
}

/** Makes the functions that end a user's sessions, factors and other records after a change of the account. */
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
   * Removes every record of a user who was removed, or linked to another: sessions, tokens, factors, passkeys,
   * consents, memberships, connected accounts, pending codes and links.
   */
  const removeRecords = async (userId: string, { requestsStay = false } = {}): Promise<void> => {
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
    /**
     * Ends what was begun with the old password: unfinished enrolments and known browsers. Called after a new one was
     * set.
     */
    endPending: async (userId: string): Promise<void> => {
      await Promise.all([authenticators.removeAllUnconfirmedOf(userId), browsers.forgetAllOf(userId)]);
    },
    endSessions,
    /** After a user was blocked: ends their sessions and refresh tokens. */
    endBlocked: async (userId: string): Promise<void> => {
      await sessions.endAllOf(userId, { reason: 'account-deactivated', refreshTokens: true });
    },
    /**
     * Detaches the linked identities of an account that was taken over by the owner of its e-mail address: they may
     * belong to the person who had registered it. {@link endAll} ends the sessions that were begun with one of them.
     */
    detachLinked: (userId: string) => detachLinked({ store, users }, userId),
    /**
     * Ends everything but the account itself. Called when the account was registered by somebody who had not proved its
     * address.
     */
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
     * Ends all sessions and tokens of a user after an identity was unlinked: a refresh token does not record which
     * identity it was obtained with. Passkeys record only their connection, so those of the identity's connection go.
     */
    endUnlinked: async (userId: string, { connection }: Pick<Identity, 'connection'>): Promise<void> => {
      await deletePasskeysOf(store, userId, connection);
      await sessions.endAllOf(userId, { reason: 'session-revoked', refreshTokens: true });
    },
    /**
     * Removes the records of a user who was linked to another. Waiting authorization requests stay: they ask again, and
     * log in the user who is left.
     */
    endLinked: (userId: string) => removeRecords(userId, { requestsStay: true }),
    /**
     * The tenant's log keeps their events.
     * @param by the user as they were judged, if they remove themselves.
     */
    removeUser: async (userId: string, by?: User): Promise<void> => {
      // The user's record goes first, so that what a concurrent login stores afterwards belongs to no user and is of no
      // use.
      await users.remove(userId, by);
      await removeRecords(userId);
    },
  };
}

async function detachLinked(
  { store, users }: Pick<AccountEndingsDependencies, 'store' | 'users'>,
  userId: string,
): Promise<void> {
  for (const { id } of (await users.identitiesOf(userId)).filter(isLinked)) {
    try {
      await users.unlink(userId, id);
    } catch (thrown) {
      if (!(thrown instanceof UniqueKeyError)) throw thrown;
      // A user with that id exists already, so the identity is removed.
      await store.collection('identities').delete(id);
    }
  }
}
